// SPDX-License-Identifier: GPL-3.0-or-later
// The functions of training against LibTorch's own autograd in float64 on the same numbers, and those that know float64
// against finite differences. Errors are measured against the size of the largest expected number.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/base/error.h"
#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/shared/recurrence.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/mixers/shared/trained_attention.h"
#include "core/mixers/shared/trained_recurrence.h"
#include "core/model/heads/head_loss.h"
#include "core/model/training_ops.h"
#include "kernels/parallel.h"

using namespace headscope;

namespace {

using Tensors = std::vector<at::Tensor>;

/// Numbers within [-1, 1] without repeats.
at::Tensor numbers(at::IntArrayRef sizes, double phase) {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    return at::sin(at::arange(count, at::kDouble) * 0.7312 + phase).view(sizes);
}

Tensors leaves(const Tensors& values, at::ScalarType type) {
    Tensors result;
    for (const at::Tensor& value : values) result.push_back(value.to(type).detach().clone().requires_grad_(true));
    return result;
}

using Formula = std::function<at::Tensor(const Tensors&)>;

struct Outcome {
    at::Tensor value;
    Tensors gradients;
};

/// f and the gradients of its sum with fixed, uneven factors.
Outcome run(const Formula& f, const Tensors& inputs) {
    const at::AutoGradMode recording(true);
    const at::Tensor value = f(inputs);
    // Every type holds them, so that no gradient differs before it begins.
    const at::Tensor factors = numbers(value.sizes(), 0.3).to(at::kBFloat16).to(value.scalar_type());
    return {value.detach(), torch::autograd::grad({(value * factors).sum()}, inputs)};
}

void check_near(const at::Tensor& found, const at::Tensor& expected, double tolerance, const std::string& what) {
    REQUIRE(found.sizes() == expected.sizes());
    const double scale = std::max(expected.abs().max().item<double>(), 1e-6);
    const double error = (found.to(at::kDouble) - expected).abs().max().item<double>() / scale;
    INFO(what << ": relative error " << error << ", allowed " << tolerance);
    CHECK(error <= tolerance);
    CHECK(scale > 1e-6);
}

/// `ours` in float32 and bfloat16 against `theirs` in float64, on the numbers that the type can hold. A result is a sum
/// of up to `terms` products, and a handful of roundings come on top; what is rounded on the way inside an exponential
/// counts `steepness` times. Where a gradient is a difference of parts that nearly cancel, `parts` is the sum of their
/// sizes over the largest result: each part is rounded once when the output is stored and once as a product.
void compare(const Formula& ours, const Formula& theirs, const Tensors& values, double terms, double steepness = 1.0,
             double parts = 0.0) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
        const double unit = steepness * (type == at::kFloat ? 0x1p-24 : 0x1p-9);
        const double sums = (16.0 + 2.0 * std::sqrt(terms)) * 0x1p-24;  // inside, both add up in float32
        const Tensors inputs = leaves(values, type);
        const Outcome found = run(ours, inputs), expected = run(theirs, leaves(inputs, at::kDouble));
        check_near(found.value, expected.value, sums + 3.0 * unit, "value");
        for (std::size_t n = 0; n < inputs.size(); ++n) {
            CHECK(found.gradients[n].scalar_type() == type);
            // In bfloat16 what lies between the function and its sum is rounded as well.
            check_near(found.gradients[n], expected.gradients[n], 4.0 * sums + 6.0 * unit + 2.0 * parts * 0x1p-24,
                       "gradient " + std::to_string(n));
        }
    }
}

at::Tensor reference_norm(const at::Tensor& x, const at::Tensor& gain, double offset) {
    return x * (x.square().mean(-1, true) + 1e-5).rsqrt() * (gain + offset);
}

at::Tensor reference_rotation(const at::Tensor& heads, const at::Tensor& cosine, const at::Tensor& sine,
                              std::int64_t turned, bool interleaved) {
    const std::int64_t half = turned / 2;
    const at::Tensor part = heads.narrow(3, 0, turned);
    const at::Tensor pairs = interleaved ? part.unflatten(3, {half, 2}) : part.unflatten(3, {2, half}).transpose(3, 4);
    const at::Tensor a = pairs.select(4, 0), b = pairs.select(4, 1);
    const at::Tensor c = cosine.unsqueeze(1), s = sine.unsqueeze(1);
    const at::Tensor x = a * c - b * s, y = b * c + a * s;
    const at::Tensor joined =
        interleaved ? at::cat({x.unsqueeze(4), y.unsqueeze(4)}, 4).flatten(3) : at::cat({x, y}, 3);
    return at::cat({joined, heads.narrow(3, turned, heads.size(3) - turned)}, 3);
}

/// d f / d input by central differences, for a few elements.
void check_differences(const Formula& f, const Tensors& values) {
    const Tensors inputs = leaves(values, at::kDouble);
    const Outcome found = run(f, inputs);
    constexpr double step = 1e-5;
    for (std::size_t n = 0; n < inputs.size(); ++n) {
        const at::Tensor flat = inputs[n].detach().flatten(), gradient = found.gradients[n].flatten();
        const double scale = gradient.abs().max().item<double>();
        for (std::int64_t at = 0; at < flat.numel(); at += 1 + flat.numel() / 7) {
            const auto moved = [&](double by) {
                const at::NoGradGuard plain;
                Tensors shifted = values;
                shifted[n] = values[n].clone();
                shifted[n].flatten()[at] += by;
                const at::AutoGradMode recording(true);
                const at::Tensor value = f(leaves(shifted, at::kDouble)).detach();
                return (value * numbers(value.sizes(), 0.3).to(at::kBFloat16).to(at::kDouble)).sum().item<double>();
            };
            const double slope = (moved(step) - moved(-step)) / (2.0 * step);
            CHECK(gradient[at].item<double>() == Approx(slope).margin(1e-7 * std::max(scale, 1.0)));
        }
    }
}

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

TEST_CASE("linear maps that are trained agree with LibTorch's autograd", "[training_ops]") {
    const auto ours = [](const Tensors& t) {
        return model::trained_linear(t[0], t[1], t.size() > 2 ? t[2] : at::Tensor());
    };
    const auto theirs = [](const Tensors& t) {
        return t.size() > 2 ? at::linear(t[0], t[1], t[2]) : at::linear(t[0], t[1]);
    };
    for (const auto& [rows, in, out] : {std::array{1, 1, 1}, {7, 5, 3}, {130, 70, 97}, {300, 33, 260}}) {
        compare(ours, theirs, {numbers({2, rows, in}, 0.1), numbers({out, in}, 0.2), numbers({out}, 0.4)},
                std::max({2 * rows, in, out}));
    }
    compare(ours, theirs, {numbers({65, 40}, 0.1), numbers({24, 40}, 0.2)}, 65);
    // A weight that is stored the other way round.
    compare([](const Tensors& t) { return model::trained_linear(t[0], t[1].t(), {}); },
            [](const Tensors& t) { return at::linear(t[0], t[1].t()); },
            {numbers({65, 40}, 0.1), numbers({40, 24}, 0.2)}, 65);
}

TEST_CASE("RMS norms that are trained agree with LibTorch's autograd", "[training_ops]") {
    for (const double offset : {0.0, 1.0}) {
        for (const std::int64_t size : {1, 24, 70, 256}) {
            compare([=](const Tensors& t) { return model::trained_rms_norm(t[0], t[1], 1e-5, offset); },
                    [=](const Tensors& t) { return reference_norm(t[0], t[1], offset); },
                    {numbers({3, 50, size}, 0.1), numbers({size}, 0.2)}, 150);
        }
    }
}

TEST_CASE("SwiGLU that is trained agrees with LibTorch's autograd", "[training_ops]") {
    for (const std::int64_t size : {1, 20, 129}) {
        compare([](const Tensors& t) { return model::trained_gated_silu(t[0]); },
                [size](const Tensors& t) { return at::silu(t[0].narrow(2, 0, size)) * t[0].narrow(2, size, size); },
                {6.0 * numbers({2, 9, 2 * size}, 0.1)}, 1);
    }
}

TEST_CASE("rotations that are trained agree with LibTorch's autograd", "[training_ops]") {
    for (const bool interleaved : {false, true}) {
        for (const std::int64_t turned : {2, 12, 40}) {
            const at::Tensor angle = numbers({9, turned / 2}, 0.5) * 3.0;
            // bfloat16 tables hold what bfloat16 can.
            const at::Tensor cosine = angle.cos().to(at::kBFloat16).to(at::kDouble);
            const at::Tensor sine = angle.sin().to(at::kBFloat16).to(at::kDouble);
            compare(
                [=](const Tensors& t) {
                    const at::ScalarType type = t[0].scalar_type();
                    // Heads beside others, as they come out of one product.
                    return model::trained_rotation(t[0].narrow(2, 0, 3), cosine.to(type), sine.to(type), turned,
                                                   interleaved);
                },
                [=](const Tensors& t) {
                    return reference_rotation(t[0].narrow(2, 0, 3), cosine, sine, turned, interleaved);
                },
                {numbers({2, 9, 5, 40}, 0.1)}, 1);
        }
    }
}

TEST_CASE("embeddings that are trained agree with LibTorch's autograd", "[training_ops]") {
    const at::Tensor ids = (at::arange(60, at::kLong).square() % 13).view({3, 20});
    compare([&](const Tensors& t) { return model::trained_embedding(t[0], ids); },
            [&](const Tensors& t) { return at::embedding(t[0], ids); }, {numbers({17, 21}, 0.1)}, 20);
}

TEST_CASE("heads that were split come together again", "[training_ops]") {
    const auto ours = [](const Tensors& t) {
        const auto [first, second] = model::split_heads(t[0], 2);
        return at::cat({first * 2.0, second * first.narrow(2, 0, 1)}, 2);
    };
    const auto theirs = [](const Tensors& t) {
        const at::Tensor first = t[0].narrow(2, 0, 2), second = t[0].narrow(2, 2, 3);
        return at::cat({first * 2.0, second * first.narrow(2, 0, 1)}, 2);
    };
    compare(ours, theirs, {numbers({2, 4, 5, 6}, 0.1)}, 4);
    compare([](const Tensors& t) { return model::split_heads(t[0], 2).second; },
            [](const Tensors& t) { return t[0].narrow(2, 2, 3); }, {numbers({2, 4, 5, 6}, 0.1)}, 1);
}

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

TEST_CASE("the loss in chunks agrees with LibTorch's on the whole matrix, gradients too", "[head_loss]") {
    const at::Tensor targets = (at::arange(50, at::kLong) * 7) % 33;
    targets[3] = -1;
    targets[49] = -1;
    const at::Tensor counted = targets.ge(0);
    for (const double z : {0.0, 0.01}) {
        const auto theirs = [&](const Tensors& t) {
            const at::Tensor logits = at::linear(t[0], t[1]);
            const at::Tensor log_total = at::logsumexp(logits, {1}) * counted;
            const at::Tensor loss = at::cross_entropy_loss(logits, targets, {}, 2 /* sum */, -1);
            return (loss + z * log_total.square().sum()).unsqueeze(0);
        };
        const Tensors values{2.0 * numbers({50, 20}, 0.1), numbers({33, 20}, 0.2)};
        for (const std::int64_t chunk : {0, 7, 50}) {
            const auto ours = [&](const Tensors& t) {
                const model::LossSum sum = model::head_loss(t[0], {t[1]}, targets, {z, chunk});
                CHECK(sum.rows == 48);
                CHECK(sum.sum.scalar_type() == at::kDouble);
                CHECK(sum.sum.item<double>() == Approx(sum.cross_entropy.value() + sum.z_loss).epsilon(1e-12));
                return sum.sum.unsqueeze(0);
            };
            // Logits are as large as 10, and rounded to bfloat16.
            compare(ours, theirs, values, 50, 10.0);
            const Tensors wide = leaves(values, at::kDouble);
            check_near(run(ours, wide).gradients[0], run(theirs, wide).gradients[0], 1e-12, "float64 hidden");
            check_near(run(ours, wide).gradients[1], run(theirs, wide).gradients[1], 1e-12, "float64 weight");
        }
        check_differences(
            [&](const Tensors& t) {
                return model::head_loss(t[0], {t[1]}, targets, {z, 7}).sum.unsqueeze(0);
            },
            values);
    }
}

TEST_CASE("the loss knows a head's bias and soft cap, as LibTorch's on the whole matrix", "[head_loss]") {
    const at::Tensor targets = (at::arange(50, at::kLong) * 7) % 33;
    targets[5] = -1;
    const at::Tensor counted = targets.ge(0);
    constexpr double z = 0.01;
    for (const double cap : {0.0, 1.5}) {
        const auto theirs = [&](const Tensors& t) {
            at::Tensor logits = at::linear(t[0], t[1], t[2]);
            if (cap > 0) logits = (logits / cap).tanh() * cap;
            const at::Tensor log_total = at::logsumexp(logits, {1}) * counted;
            const at::Tensor loss = at::cross_entropy_loss(logits, targets, {}, 2 /* sum */, -1);
            return (loss + z * log_total.square().sum()).unsqueeze(0);
        };
        const auto ours = [&](const Tensors& t) {
            return model::head_loss(t[0], {t[1], t[2], cap}, targets, {z, 7}).sum.unsqueeze(0);
        };
        const Tensors values{2.0 * numbers({50, 20}, 0.1), numbers({33, 20}, 0.2), numbers({33}, 0.3)};
        compare(ours, theirs, values, 50, 10.0);
        const Tensors wide = leaves(values, at::kDouble);
        for (std::size_t i = 0; i < 3; ++i)
            check_near(run(ours, wide).gradients[i], run(theirs, wide).gradients[i], 1e-12, "float64");
        check_differences(ours, values);
    }
}

TEST_CASE("the loss refuses targets and shapes that do not fit", "[head_loss]") {
    const at::Tensor hidden = numbers({4, 3}, 0.1), head = numbers({5, 3}, 0.2);
    const at::Tensor targets = at::arange(4, at::kLong);
    CHECK_THROWS_AS(model::head_loss(hidden, {head}, targets + 2), Error);
    CHECK_THROWS_AS(model::head_loss(hidden, {head}, targets - 2), Error);
    CHECK_THROWS_AS(model::head_loss(hidden, {head}, targets.narrow(0, 0, 3)), Error);
    CHECK_THROWS_AS(model::head_loss(hidden, {head, numbers({4}, 0.2)}, targets), Error);
    CHECK_THROWS_AS(model::head_loss(hidden, {numbers({5, 4}, 0.2)}, targets), Error);
    CHECK_THROWS_AS(model::head_loss(hidden.to(at::kFloat), {head}, targets), Error);
    CHECK_NOTHROW(model::head_loss(hidden, {head}, targets));
}

TEST_CASE("gradients have the same bits for every thread count", "[training_ops]") {
    const at::Tensor ids = (at::arange(90, at::kLong).square() % 13).view({1, 90});
    const at::Tensor targets = ids.flatten();
    const Tensors values{numbers({13, 48}, 0.1), numbers({48}, 0.2), numbers({96, 48}, 0.3), numbers({48, 48}, 0.4)};
    const auto step = [&](const Tensors& t) {
        const at::Tensor x = model::trained_rms_norm(model::trained_embedding(t[0], ids), t[1], 1e-5, 0.0);
        const at::Tensor y =
            model::trained_linear(model::trained_gated_silu(model::trained_linear(x, t[2], {})), t[3], {});
        return model::head_loss((x + y).view({90, 48}), {t[0]}, targets, {}).sum.unsqueeze(0);
    };
    Outcome first;
    for (const int threads : {1, 2, 5}) {
        kernels::set_threads(threads);
        const Outcome found = run(step, leaves(values, at::kFloat));
        if (threads == 1) first = found;
        CHECK(found.value.equal(first.value));
        for (std::size_t n = 0; n < values.size(); ++n) CHECK(found.gradients[n].equal(first.gradients[n]));
    }
    kernels::set_threads(0);
}
