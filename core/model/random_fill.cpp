// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/random_fill.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include "core/base/splitmix64.h"
#include "core/model/device.h"
#include "kernels/parallel.h"

namespace headscope::model {
namespace {

constexpr std::int64_t kGrain = 16'384;

/// The number at place `index` of the sequence of `key`.
std::uint64_t random_bits(std::uint64_t key, std::uint64_t index) {
    return splitmix64(key + (index + 1) * 0x9e3779b97f4a7c15U);
}

double unit(std::uint64_t bits) {
    return (static_cast<double>(bits >> 11U) + 0.5) * 0x1p-53;  // in (0, 1)
}

/// Box and Muller's pair for places 2p and 2p + 1.
double normal_at(std::uint64_t key, std::int64_t index) {
    const auto pair = static_cast<std::uint64_t>(index) & ~std::uint64_t{1};
    const double radius = std::sqrt(-2.0 * std::log(unit(random_bits(key, pair))));
    const double angle = 2.0 * std::numbers::pi * unit(random_bits(key, pair + 1));
    return radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

/// work(i) for i in [0, count).
template <class Work>
void for_each_place(std::int64_t count, const Work& work) {
    kernels::parallel_for((count + kGrain - 1) / kGrain, [&](std::int64_t piece, int) {
        const std::int64_t end = std::min(count, (piece + 1) * kGrain);
        for (std::int64_t i = piece * kGrain; i < end; ++i) work(i);
    });
}

/// number(i) at place i, in float64 and rounded.
template <class Number>
void fill_each(const at::Tensor& into, const Number& number) {
    const at::Tensor drawn = at::empty(into.sizes(), at::kDouble);
    auto* data = drawn.mutable_data_ptr<double>();
    for_each_place(drawn.numel(), [&](std::int64_t i) { data[i] = number(i); });
    into.copy_(drawn);
}

}  // namespace

std::uint64_t random_key(std::uint64_t seed, std::string_view name) {
    std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
    for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
    return splitmix64(hash ^ splitmix64(seed + 0x9e3779b97f4a7c15U));
}

void fill_normal(const at::Tensor& into, std::uint64_t key, double deviation) {
    fill_each(into, [&](std::int64_t i) { return deviation * normal_at(key, i); });
}

void fill_cut_normal(const at::Tensor& into, std::uint64_t key, double deviation) {
    fill_each(into, [&](std::int64_t i) {
        double number = normal_at(key, i);
        for (std::uint64_t again = 1; std::abs(number) > 2; ++again) number = normal_at(splitmix64(key + again), i);
        return deviation * number;
    });
}

void fill_uniform(const at::Tensor& into, std::uint64_t key) {
    const at::Tensor drawn = at::empty(into.sizes(), at::kDouble);
    auto* data = drawn.mutable_data_ptr<double>();
    for (std::int64_t i = 0; i < drawn.numel(); ++i) data[i] = unit(random_bits(key, static_cast<std::uint64_t>(i)));
    into.copy_(drawn);
}

void fill_integers(const at::Tensor& into, std::uint64_t key, std::int64_t limit) {
    auto* data = into.mutable_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < into.numel(); ++i) {
        const double share = unit(random_bits(key, static_cast<std::uint64_t>(i)));
        data[i] = static_cast<std::int64_t>(share * static_cast<double>(limit));
    }
}

at::Tensor drop(const at::Tensor& x, double dropout, std::uint64_t key, std::int64_t first) {
    if (dropout <= 0) return x;
    at::Tensor factors = at::empty(x.sizes(), at::kFloat);
    auto* data = factors.mutable_data_ptr<float>();
    const auto kept = static_cast<float>(1.0 / (1.0 - dropout));
    for_each_place(factors.numel(), [&](std::int64_t i) {
        data[i] = unit(random_bits(key, static_cast<std::uint64_t>(first + i))) < dropout ? 0.0F : kept;
    });
    return x * on_device(factors.to(x.scalar_type()), x.device());
}

}  // namespace headscope::model
