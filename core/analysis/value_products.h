// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"

namespace headscope::analysis {

/// At weight 1 each head adds v_j W_O^h for a key, where W_O^h is the columns of the output projection that read head
/// h. Returns the inner products of these, [keys, heads, heads]: enough for the norm of one head's or all heads' output
/// at any weights. value [key-value heads, keys, dv], output [d, heads * dv]. In float32, a few keys at a time. Throws
/// Stopped.
std::vector<float> value_products(const at::Tensor& value, const at::Tensor& output, std::int64_t heads,
                                  const Cancellation& cancellation);

}  // namespace headscope::analysis
