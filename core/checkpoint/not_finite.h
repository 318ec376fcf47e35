// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace headscope::checkpoint {

/// How many numbers of a tensor are NaN or infinite; 0 for types that have no such numbers. As fast as memory where
/// there are none.
std::int64_t count_not_finite(const at::Tensor& tensor);

/// The first of them, counted row by row; -1: all are finite.
std::int64_t first_not_finite(const at::Tensor& tensor);

}  // namespace headscope::checkpoint
