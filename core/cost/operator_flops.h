// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string_view>

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

namespace headscope::cost {

/// Floating-point operations of one call of one of LibTorch's operators that multiply matrices, from its arguments;
/// -1 for any other operator.
std::int64_t flops_of_operator(std::string_view name, c10::ArrayRef<const c10::IValue> inputs);

}  // namespace headscope::cost
