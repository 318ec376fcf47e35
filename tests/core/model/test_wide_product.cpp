// SPDX-License-Identifier: GPL-3.0-or-later
// Products of bfloat16 in float32 arithmetic, rounded once, piece by piece.
#include "tests/catch_with_torch.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>

#include "core/model/load/memory.h"
#include "core/model/wide_product.h"

using namespace headscope;

namespace {

at::Tensor some(std::vector<std::int64_t> shape, std::uint64_t seed) {
    return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed)).to(at::kBFloat16);
}

/// No further from the product in float64 than half a step of bfloat16, and the float32 sums' error.
void check_rounded_once(const at::Tensor& found, const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& bias) {
    const auto wide = [](const at::Tensor& t) { return t.defined() ? t.to(at::kDouble) : t; };
    const at::Tensor exact = at::linear(wide(x), wide(weight), wide(bias));
    const at::Tensor terms = at::linear(wide(x).abs(), wide(weight).abs(), bias.defined() ? wide(bias).abs() : bias);
    REQUIRE(found.scalar_type() == at::kBFloat16);
    REQUIRE(found.sizes() == exact.sizes());
    const double sums = static_cast<double>(x.size(-1)) * 0x1p-24;
    CHECK(((found.to(at::kDouble) - exact).abs() <= exact.abs() * 0x1p-8 + terms * sums).all().item<bool>());
}

}  // namespace

TEST_CASE("Widened products of bfloat16 are rounded once, whatever the pieces", "[model]") {
    // A piece has 374 rows of 700 columns for few rows of x, the whole weight for many.
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{1, 700}, {2, 3, 700}, {2, 90, 700}}) {
        CAPTURE(shape);
        const at::Tensor x = some(shape, 1), bias = some({1000}, 3);
        for (const at::Tensor& weight : {some({1000, 700}, 2), some({700, 1000}, 2).t()}) {
            check_rounded_once(model::widened_linear(x, weight, {}), x, weight, {});
            check_rounded_once(model::widened_linear(x, weight, bias), x, weight, bias);
        }
    }
    CHECK(model::widened_linear(some({0, 8}, 1), some({5, 8}, 2), {}).sizes() == at::IntArrayRef{0, 5});
}

TEST_CASE("Products of bfloat16 are widened where the processor has none of them", "[model]") {
    const at::Tensor x = some({40, 64}, 1), weight = some({48, 64}, 2), bias = some({48}, 3);
    const at::Tensor found = model::linear_map(x, weight, bias);
    if (!model::multiplies_bfloat16(at::kCPU)) CHECK(at::equal(found, model::widened_linear(x, weight, bias)));
    check_rounded_once(found, x, weight, bias);
    const at::Tensor wide = x.to(at::kFloat), wide_weight = weight.to(at::kFloat);
    CHECK(at::equal(model::linear_map(wide, wide_weight), at::linear(wide, wide_weight)));
}

TEST_CASE("The plan of a pass in bfloat16 counts what is in float32 meanwhile", "[model][memory]") {
    model::ModelConfig config;
    config.hidden = 4096;
    config.feed_forward = 14'336;
    config.heads = 32;
    config.head_size = 128;
    constexpr double kRows = 100;
    const double more = model::pass_bytes(config, kRows, 2) - model::pass_bytes(config, kRows, 4) / 2;
    // 4096 rows of the weight at once, the rows they are multiplied with, and the results.
    const double widened = 4 * (4096.0 * 4096 + kRows * (4096 + 4096));
    CHECK(more == Approx(model::multiplies_bfloat16(at::kCPU) ? 0 : widened).margin(1));
}
