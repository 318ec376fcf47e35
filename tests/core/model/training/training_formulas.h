// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Functions that are trained against formulas in float64, values and gradients. Errors are measured against the size of
// the largest expected number.

#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>
#include <torch/csrc/autograd/autograd.h>

namespace headscope::test::formulas {

using Tensors = std::vector<at::Tensor>;

/// Numbers within [-1, 1] without repeats.
inline at::Tensor numbers(at::IntArrayRef sizes, double phase) {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    return at::sin(at::arange(count, at::kDouble) * 0.7312 + phase).view(sizes);
}

inline Tensors leaves(const Tensors& values, at::ScalarType type) {
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
inline Outcome run(const Formula& f, const Tensors& inputs) {
    const at::AutoGradMode recording(true);
    const at::Tensor value = f(inputs);
    // Every type holds them, so that no gradient differs before it begins.
    const at::Tensor factors = numbers(value.sizes(), 0.3).to(at::kBFloat16).to(value.scalar_type());
    return {value.detach(), torch::autograd::grad({(value * factors).sum()}, inputs)};
}

inline void check_near(const at::Tensor& found, const at::Tensor& expected, double tolerance, const std::string& what) {
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
inline void compare(const Formula& ours, const Formula& theirs, const Tensors& values, double terms,
                    double steepness = 1.0, double parts = 0.0) {
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

/// d f / d input by central differences, for a few elements.
inline void check_differences(const Formula& f, const Tensors& values) {
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

}  // namespace headscope::test::formulas
