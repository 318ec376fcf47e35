// SPDX-License-Identifier: GPL-3.0-or-later
// The functions of training against LibTorch's own autograd in float64 on the same numbers, and those that know float64
// against finite differences: maps, norms, rotations, embeddings and the loss.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/silu.h>

#include "core/base/error.h"
#include "core/model/heads/head_loss.h"
#include "core/model/training_ops.h"
#include "kernels/parallel.h"
#include "tests/core/model/training/training_formulas.h"

using namespace headscope;
using namespace headscope::test::formulas;

namespace {

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
