// SPDX-License-Identifier: GPL-3.0-or-later
// Attention, recurrences and short convolutions that are trained against LibTorch's own autograd in float64 on the same
// numbers.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/shared/recurrence.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/mixers/shared/trained_attention.h"
#include "core/mixers/shared/trained_recurrence.h"
#include "tests/core/model/training/training_formulas.h"

using namespace headscope;
using namespace headscope::test::formulas;

namespace {

kernels::ScoreRule rule_for(const at::Tensor& query) {
    kernels::ScoreRule rule;
    rule.scale = 1.0 / std::sqrt(static_cast<double>(query.size(3)));
    return rule;
}

/// One key beside a sink: the weight is A = 1 / (1 + exp(sink - score)), and the slope of a bias, A (1 - A) dA, is
/// found as A (dA - O . dO). The sizes of both parts, added up over the numbers of a value, over the largest slope.
double parts_of_one_key(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& sinks,
                        const at::Tensor& biases) {
    const std::int64_t heads = q.size(1), group = heads / k.size(1);
    const at::Tensor keys = k.repeat_interleave(group, 1), values = v.repeat_interleave(group, 1);
    const at::Tensor scores =
        (q * keys).sum(-1) / std::sqrt(static_cast<double>(q.size(3))) + biases.view({1, heads, 1});
    const at::Tensor weight = (scores - sinks.view({1, heads, 1})).sigmoid();
    const at::Tensor factors =
        numbers({q.size(0), 1, heads * q.size(3)}, 0.3).view({q.size(0), 1, heads, q.size(3)}).transpose(1, 2);
    const at::Tensor slopes = (weight * (1.0 - weight) * (values * factors).sum(-1)).sum(0).abs();
    const at::Tensor sizes = (2.0 * weight * (values * factors).abs().sum(-1)).sum(0);
    return (sizes.max() / slopes.max()).item<double>();
}

}  // namespace

TEST_CASE("attention that is trained agrees with LibTorch's autograd of the whole matrix", "[training_ops]") {
    for (const auto& [length, window, groups] : {std::array{1, -1, 2}, {65, -1, 4}, {65, 9, 2}, {130, -1, 1}}) {
        const auto attend = [window = window](bool fused) {
            return [=](const Tensors& t) {
                // Views of one product, as mixers have them.
                const std::int64_t heads = 4, group = (t[0].size(2) - heads) / 2;
                const auto part = [&](std::int64_t first, std::int64_t count) {
                    return t[0].narrow(2, first, count).transpose(1, 2);
                };
                const at::Tensor q = part(0, heads), k = part(heads, group), v = part(heads + group, group);
                kernels::ScoreRule rule = rule_for(q);
                rule.window_left = window;
                if (!fused) return mixers::dense_attention(q, k, v, rule).transpose(1, 2).flatten(2);
                REQUIRE(mixers::trains_fused(q, k, v, rule));
                return mixers::trained_attention(q, k, v, rule, {}, nullptr);
            };
        };
        compare(attend(true), attend(false), {2.0 * numbers({2, length, 4 + 2 * groups, 24}, 0.1)}, length);
    }
}

TEST_CASE("vectors of unit length that are trained agree with LibTorch's autograd", "[training_ops]") {
    const Formula unit = [](const Tensors& x) { return mixers::unit_length(x[0].transpose(1, 2)); };
    compare(unit, unit, {numbers({2, 5, 3, 20}, 0.1)}, 20.0);
    compare(unit, unit, {1e-3 * numbers({2, 5, 3, 7}, 0.2)},
            7.0);  // not much longer than what keeps 0 from being divided
}

TEST_CASE("short convolutions that are trained agree with LibTorch's autograd", "[training_ops]") {
    for (const std::int64_t length : {1, 3, 255, 256, 258}) {
        for (const std::int64_t taps : {1, 4}) {
            const Tensors inputs{numbers({2, length, 149}, 0.1), numbers({149, taps}, 0.2), numbers({149}, 0.3)};
            // A tap's gradient adds 2 length products, whose signs cancel half of it.
            const auto terms = static_cast<double>(4 * length + taps);
            for (const bool plain : {false, true}) {
                INFO("length " << length << ", taps " << taps << ", plain " << plain);
                // In float64 the same function uses LibTorch's operators.
                const Formula whole = [plain](const Tensors& x) {
                    return mixers::short_convolution(x[0], x[1], x.size() > 2 ? x[2] : at::Tensor(), nullptr, plain);
                };
                compare(whole, whole, inputs, terms);
                compare(whole, whole, {inputs[0], inputs[1]}, terms);
            }
            // Some channels of wider rows, as projections that lie together have them.
            const Formula part = [](const Tensors& x) {
                return mixers::short_convolution(x[0].narrow(2, 7, 60), x[1].narrow(0, 7, 60), {}, nullptr);
            };
            compare(part, part, {inputs[0], inputs[1]}, terms);
        }
    }
}

TEST_CASE("a short convolution goes on behind what its cache holds", "[training_ops]") {
    const at::NoGradGuard plain;
    for (const std::int64_t taps : {1, 2, 4}) {
        const at::Tensor x = numbers({2, 11, 35}, 0.1).to(at::kFloat), weight = numbers({35, taps}, 0.2).to(at::kFloat);
        const at::Tensor whole = mixers::short_convolution(x, weight, {}, nullptr);
        for (const std::int64_t step : {1, 2, 5}) {
            at::Tensor before;
            Tensors parts;
            for (std::int64_t first = 0; first < 11; first += step)
                parts.push_back(
                    mixers::short_convolution(x.narrow(1, first, std::min(step, 11 - first)), weight, {}, &before));
            CHECK(at::equal(at::cat(parts, 1), whole));
            CHECK(at::equal(before, x.narrow(1, 12 - taps, taps - 1)));
        }
    }
}

TEST_CASE("a recurrence that is trained agrees with LibTorch's autograd through its pieces", "[training_ops]") {
    const std::int64_t batch = 2, heads = 4, key_heads = 2, length = 90, keys = 12, values = 20;
    Tensors inputs{0.3 * numbers({batch, key_heads, length, keys}, 0.1),
                   0.3 * numbers({batch, key_heads, length, keys}, 0.2), numbers({batch, heads, length, values}, 0.3),
                   0.5 + 0.5 * numbers({batch, heads, length}, 0.4), -0.2 - 0.2 * numbers({batch, heads, length}, 0.5)};
    mixers::Recurrence base;
    base.rule.scale = 0.6;
    const auto filled = [&base](const Tensors& x) {
        mixers::Recurrence what = base;
        what.query = x[0];
        what.key = x[1];
        what.value = x[2];
        what.write = x[3];
        if (x.size() > 4) what.log_decay = x[4];
        if (x.size() > 5) what.kept = x[5];
        return what;
    };
    const Formula fused = [&](const Tensors& x) {
        REQUIRE(mixers::recurrence_trains_fused(filled(x)));
        return mixers::trained_recurrence(filled(x), nullptr);
    };
    const Formula pieces = [&](const Tensors& x) {
        return mixers::side_by_side(mixers::recur_in_pieces(filled(x), nullptr));
    };
    const auto terms = static_cast<double>(length + keys + values);
    for (const bool delta : {true, false}) {
        base.rule.delta = delta;
        compare(fused, pieces, inputs, terms);
        compare(fused, pieces, {inputs[0], inputs[1], inputs[2], inputs[3]}, terms);
    }
    base.rule.delta = true;
    base.rule.length = {90, 71};
    compare(fused, pieces, inputs, terms);
    base.rule.chunk_size = 40;
    inputs.push_back((0.6 + 0.5 * numbers({batch, heads, 3}, 0.6)).clamp(0.0, 1.0));
    base.dropped_too = true;
    for (const bool own : {true, false}) {
        base.rule.reads_own_chunk = own;
        compare(fused, pieces, inputs, terms);
    }
    // Nothing recorded, a decay of each number of the key, float64: LibTorch's pieces, or no gradient at all.
    CHECK_FALSE(mixers::recurrence_trains_fused(filled(inputs)));
    CHECK_FALSE(mixers::recurrence_trains_fused(filled(leaves(inputs, at::kDouble))));
    Tensors channels = leaves(inputs, at::kFloat);
    channels[4] = at::zeros({batch, heads, length, keys});
    CHECK_FALSE(mixers::recurrence_trains_fused(filled(channels)));
}

TEST_CASE("sink logits, offsets and distance biases that are trained agree with LibTorch's autograd",
          "[training_ops]") {
    for (const auto& [length, normaliser] :
         {std::pair{1, kernels::Normaliser::softmax}, std::pair{65, kernels::Normaliser::softmax},
          std::pair{130, kernels::Normaliser::softmax}, std::pair{65, kernels::Normaliser::sparsemax},
          std::pair{65, kernels::Normaliser::entmax}, std::pair{65, kernels::Normaliser::elastic}}) {
        const auto attend = [normaliser = normaliser](bool fused) {
            return [=](const Tensors& t) {
                const auto part = [&](std::int64_t first, std::int64_t count) {
                    return t[0].narrow(2, first, count).transpose(1, 2);
                };
                const at::Tensor q = part(0, 4), k = part(4, 2), v = part(6, 2);
                const at::Tensor sinks = t[1].to(at::kFloat), biases = t[2].to(at::kFloat).contiguous();
                kernels::ScoreRule rule = rule_for(q);
                rule.normaliser = normaliser;
                const bool elastic = normaliser == kernels::Normaliser::elastic;
                (elastic ? rule.offsets : rule.sink_logits)
                    .assign(sinks.const_data_ptr<float>(), sinks.const_data_ptr<float>() + 4);
                rule.bias_length = biases.size(1);
                rule.bias_origin = biases.size(1) - 1;
                rule.distance_bias.assign(biases.const_data_ptr<float>(),
                                          biases.const_data_ptr<float>() + biases.numel());
                mixers::RuleTensors tensors;
                (elastic ? tensors.offsets : tensors.sink_logits) = t[1];
                tensors.distance_bias = t[2];
                if (!fused) return mixers::dense_attention(q, k, v, rule, tensors).transpose(1, 2).flatten(2);
                REQUIRE(mixers::trains_fused(q, k, v, rule));
                return mixers::trained_attention(q, k, v, rule, tensors, nullptr);
            };
        };
        const Tensors inputs{2.0 * numbers({2, length, 8, 24}, 0.1), 2.0 * numbers({4}, 0.3), numbers({4, 11}, 0.2)};
        const auto heads = [&](std::int64_t first, std::int64_t count) {
            return inputs[0].narrow(2, first, count).transpose(1, 2);
        };
        const double parts =
            length == 1 ? parts_of_one_key(heads(0, 4), heads(4, 2), heads(6, 2), inputs[1], inputs[2].narrow(1, 10, 1))
                        : 0.0;
        // A bias adds up the slopes of all rows; scores reach 10.
        compare(attend(true), attend(false), inputs, 8.0 * length, 8.0, parts);
    }
}

TEST_CASE("dense attention, the float64 way of training, agrees with finite differences", "[training_ops]") {
    check_differences([](const Tensors& t) { return mixers::dense_attention(t[0], t[1], t[2], rule_for(t[0])); },
                      {numbers({1, 4, 6, 8}, 0.1), numbers({1, 2, 6, 8}, 0.2), numbers({1, 2, 6, 5}, 0.3)});
}
