// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/mxfp4.h"

#include <cmath>

#include <ATen/ops/empty.h>

namespace headscope::model {
namespace {

constexpr float kValues[16] = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                               -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};
constexpr int kExponentBias = 127;

}  // namespace

at::Tensor unpack_mxfp4(const at::Tensor& blocks, const at::Tensor& scales, at::ScalarType type,
                        const Cancellation* cancellation) {
    const std::int64_t experts = blocks.size(0), rows = blocks.size(1), groups = blocks.size(2), size = blocks.size(3);
    at::Tensor all = at::empty({experts, rows, groups * size * 2}, at::TensorOptions(type));
    at::Tensor one = at::empty({rows, groups * size * 2}, at::kFloat);
    for (std::int64_t expert = 0; expert < experts; ++expert) {
        if (cancellation) cancellation->check();
        const std::uint8_t* bytes = blocks.const_data_ptr<std::uint8_t>() + expert * rows * groups * size;
        const std::uint8_t* exponents = scales.const_data_ptr<std::uint8_t>() + expert * rows * groups;
        auto* out = one.mutable_data_ptr<float>();
        for (std::int64_t group = 0; group < rows * groups; ++group) {
            const float scale = std::ldexp(1.0F, static_cast<int>(exponents[group]) - kExponentBias);
            for (std::int64_t i = 0; i < size; ++i, ++bytes, out += 2) {
                out[0] = kValues[*bytes & 15U] * scale;
                out[1] = kValues[*bytes >> 4U] * scale;
            }
        }
        all.select(0, expert).copy_(one);
    }
    return all;
}

}  // namespace headscope::model
