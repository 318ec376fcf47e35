// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Checks of the content of parts, which every format has.

#include "core/checkpoint/packed/numbers.h"
#include "core/checkpoint/packed/packed_tensor.h"

namespace headscope::checkpoint {

using PartBytes = std::vector<std::span<const std::byte>>;

/// Throws Error(internal) unless the spans have the sizes that the parts name, and the rows exist.
void check_sizes(const PackedTensor& tensor, const PartBytes& parts, std::int64_t first = 0, std::int64_t count = 0);

/// Throws Error(format) where a number of part `index` is NaN or infinite.
void check_finite(const PackedTensor& tensor, const PartBytes& parts, std::size_t index, DataType type);

/// Throws Error(format) unless part `index` is one finite number other than 0.
void check_divisor(const PackedTensor& tensor, const PartBytes& parts, std::size_t index);

/// Groups of the columns: part `index` as int32, checked to be below `groups`. If `may_be_unset` and all are -1, groups
/// of `size` columns in order.
std::vector<std::uint32_t> read_groups(const PackedTensor& tensor, const PartBytes& parts, std::size_t index,
                                       std::int64_t groups, std::int64_t size, bool may_be_unset);
/// Groups of `size` columns in order.
std::vector<std::uint32_t> groups_in_order(std::int64_t columns, std::int64_t size);

/// "tensor \"NAME\"", for the place of an error.
std::string packed_place(const std::string& tensor);

}  // namespace headscope::checkpoint
