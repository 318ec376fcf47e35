// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/wide_product.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>

#include "core/model/training_ops.h"

namespace headscope::model {
namespace {

// Numbers of the weight in a piece: for few rows one that stays in cache, for many one that keeps products whole.
constexpr std::int64_t kFewRows = 8, kNumbersInCache = 1 << 18;

}  // namespace

bool multiplies_bfloat16(const at::Device& device) {
    if (!device.is_cpu()) return true;
#if defined(__x86_64__)
    static const bool has = __builtin_cpu_supports("avx512bf16") || __builtin_cpu_supports("amx-bf16");
    return has;
#else
    return true;
#endif
}

at::Tensor widened_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    const std::int64_t out = weight.size(0), in = weight.size(1), rows = x.numel() / std::max<std::int64_t>(1, in);
    const at::Tensor wide = x.reshape({rows, in}).to(at::kFloat);
    const std::int64_t numbers = rows <= kFewRows ? kNumbersInCache : kWidenedNumbers;
    const std::int64_t step = std::max<std::int64_t>(1, numbers / std::max<std::int64_t>(1, in));
    const at::Tensor result = at::empty({rows, out}, x.options());
    for (std::int64_t first = 0; first < out; first += step) {
        const std::int64_t count = std::min(step, out - first);
        const at::Tensor piece = weight.narrow(0, first, count).to(at::kFloat);
        const at::Tensor own = bias.defined() ? bias.narrow(0, first, count).to(at::kFloat) : at::Tensor();
        result.narrow(1, first, count).copy_(at::linear(wide, piece, own));
    }
    std::vector<std::int64_t> shape = x.sizes().vec();
    shape.back() = out;
    return result.view(shape);
}

at::Tensor linear_map(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    const bool narrow = x.scalar_type() == at::kBFloat16 && weight.scalar_type() == at::kBFloat16;
    const bool widens = narrow && !multiplies_bfloat16(x.device()) && !recorded(x) && !recorded(weight);
    return widens ? widened_linear(x, weight, bias) : at::linear(x, weight, bias);
}

}  // namespace headscope::model
