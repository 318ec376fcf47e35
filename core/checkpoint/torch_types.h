// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// LibTorch's type with the same bits; empty for those it lacks (F4, F6).
std::optional<c10::ScalarType> torch_type(DataType type);

/// The reverse; empty for types that safetensors lacks.
std::optional<DataType> data_type(c10::ScalarType type);

/// Type of a tensor stored as `stored` and loaded under `as`: unchanged unless it is a floating-point type.
DataType loaded_type(DataType stored, LoadAs as);

}  // namespace headscope::checkpoint
