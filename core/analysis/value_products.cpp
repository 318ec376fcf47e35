// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/value_products.h"

#include <algorithm>

#include <ATen/ops/bmm.h>

#include "core/analysis/tensor_values.h"

namespace headscope::analysis {
namespace {

constexpr std::int64_t kNumbers = std::int64_t{1} << 22;  ///< of all heads and some keys in memory

}  // namespace

std::vector<float> value_products(const at::Tensor& value, const at::Tensor& output, std::int64_t heads,
                                  const Cancellation& cancellation) {
    const std::int64_t groups = value.size(0), keys = value.size(1), size = value.size(2), width = output.size(0);
    const at::Tensor projection = output.to(at::kFloat).view({width, heads, size}).permute({1, 2, 0}).contiguous();
    const std::int64_t step = std::max<std::int64_t>(1, kNumbers / (heads * width));
    std::vector<float> products;
    products.reserve(static_cast<std::size_t>(keys * heads * heads));
    for (std::int64_t first = 0; first < keys; first += step) {
        cancellation.check();
        const at::Tensor some = value.narrow(1, first, std::min(step, keys - first)).to(at::kFloat);
        const at::Tensor given = at::bmm(some.repeat_interleave(heads / groups, 0), projection).transpose(0, 1);
        const std::vector<float> part = float_values(at::bmm(given, given.transpose(1, 2)));
        products.insert(products.end(), part.begin(), part.end());
    }
    return products;
}

}  // namespace headscope::analysis
