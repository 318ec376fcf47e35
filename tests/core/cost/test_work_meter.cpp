// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <functional>

#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <c10/core/InferenceMode.h>

#include "core/cost/work_meter.h"
#include "core/mixers/shared/attend.h"
#include "kernels/attention.h"
#include "kernels/backend.h"

using namespace headscope;

namespace {

std::int64_t flops_of(const std::function<void()>& run) {
    const cost::WorkMeter meter;
    run();
    return meter.flops();
}

kernels::TensorView view(const at::Tensor& x) {
    return {x.const_data_ptr(), kernels::ElementType::float32,
            x.size(0),          x.size(1),
            x.size(2),          x.size(3),
            x.stride(0),        x.stride(1),
            x.stride(2)};
}

}  // namespace

TEST_CASE("Products of LibTorch are counted once, whichever operator leads to them", "[cost]") {
    const at::Tensor a = at::rand({5, 7}), b = at::rand({7, 3}), batch = at::rand({4, 5, 7});
    CHECK(flops_of([&] { at::matmul(a, b); }) == 2 * 5 * 7 * 3);
    CHECK(flops_of([&] { at::matmul(a, at::rand({7})); }) == 2 * 5 * 7);
    CHECK(flops_of([&] { at::linear(a, at::rand({3, 7}), at::rand({3})); }) == 2 * 5 * 7 * 3);
    CHECK(flops_of([&] { at::linear(batch, at::rand({3, 7})); }) == 2 * 4 * 5 * 7 * 3);
    CHECK(flops_of([&] { at::bmm(batch, at::rand({4, 7, 3})); }) == 2 * 4 * 5 * 7 * 3);
    CHECK(flops_of([&] {
              const c10::InferenceMode inference;
              at::matmul(a, b);
              at::matmul(a, b);
          }) == 2 * 2 * 5 * 7 * 3);
    CHECK(flops_of([&] { a.exp().sum(); }) == 0);
}

TEST_CASE("LibTorch's fused attention is counted by the blocks that it computes", "[cost]") {
    const c10::InferenceMode inference;
    const at::Tensor q = at::rand({2, 3, 64, 8});
    const auto attend = [&](bool causal) {
        return flops_of([&] { at::scaled_dot_product_attention(q, q, q, {}, 0.0, causal); });
    };
    CHECK(attend(false) == 2 * 2 * 3 * 64 * 64 * 16);
    CHECK(attend(true) == 2 * 2 * 3 * (32 * 32 + 32 * 64) * 16);  // blocks of 32 queries
}

TEST_CASE("Our attention counts the tiles that it computes: at least the visible pairs, at most all", "[cost]") {
    const std::int64_t length = 501, size = 32, heads = 3;
    const at::Tensor q = at::rand({1, heads, length, size}), out = at::empty({1, heads, length, size});
    kernels::ScoreRule rule;
    kernels::AttentionInput input{view(q), view(q), view(q), &rule, nullptr};
    const auto count = [&] {
        return flops_of([&] {
            kernels::attention(input, {out.mutable_data_ptr<float>(), out.stride(0), out.stride(1), out.stride(2)});
        });
    };
    if (kernels::available_backends().front() == "reference") return;
    kernels::force_backend("auto");
    const std::int64_t causal = count();
    CHECK(causal >= 4 * heads * size * length * (length + 1) / 2);
    rule.causal = false;
    const std::int64_t full = count();
    CHECK(full >= 4 * heads * size * length * length);
    CHECK(full < 4 * heads * size * (length + 40) * (length + 40));  // rounded up to rows and panels of a tile
    CHECK(causal < 0.75 * static_cast<double>(full));
    rule.causal = true;
    rule.window_left = 31;
    CHECK(count() < causal / 2);
}

TEST_CASE("Memory of tensors is followed from where the meter began", "[cost]") {
    const at::Tensor before = at::empty({1000});
    const cost::WorkMeter meter;
    CHECK(meter.bytes() == 0);
    at::Tensor kept = at::empty({256, 256}, at::kFloat);
    const std::int64_t one = 256 * 256 * 4;
    CHECK(meter.bytes() == one);
    at::empty({512, 256}, at::kFloat);  // gone at once
    CHECK(meter.bytes() == one);
    CHECK(meter.peak_bytes() == 3 * one);
    CHECK_THROWS_AS(cost::WorkMeter(), kernels::Error);
}

TEST_CASE("The peak can be reset", "[cost]") {
    cost::WorkMeter meter;
    at::empty({1000}, at::kFloat);
    CHECK(meter.peak_bytes() == 4000);
    meter.restart_peak();
    CHECK(meter.peak_bytes() == 0);
}
