// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// The type that safetensors calls `name`; empty if there is none.
std::optional<DataType> data_type(std::string_view name);

/// Real floating-point types, those that LoadAs and convert apply to. Complex numbers are not among them.
bool is_floating(DataType type);

/// Bits of a tensor of this shape and type, and its number of elements, by checked arithmetic; empty on overflow or a
/// negative size.
std::optional<std::uint64_t> checked_bits(const std::vector<std::int64_t>& shape, DataType type,
                                          std::int64_t& elements);

}  // namespace headscope::checkpoint
