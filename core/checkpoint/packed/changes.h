// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Packed tensors made of others: rows moved, shapes changed, numbers mapped. The parts of a result are those of its
// sources, one after the other.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/checkpoint/packed/packed_tensor.h"

namespace headscope::checkpoint {

using PackedPointer = std::shared_ptr<const PackedTensor>;

/// The same numbers in the same order. Throws std::invalid_argument where their count differs.
PackedPointer with_shape(PackedPointer source, std::vector<std::int64_t> shape);

/// A row of one of several sources.
struct SourceRow {
    std::size_t source = 0;
    std::int64_t row = 0;
};

/// Row r is that which `place` gives. All sources have the columns of `shape`. `place` must be pure.
PackedPointer with_rows(std::vector<PackedPointer> sources, std::vector<std::int64_t> shape,
                        std::function<SourceRow(std::int64_t row)> place);

/// Column i of each row is column `columns[i]` of the source's; there may be fewer.
PackedPointer with_columns(PackedPointer source, std::vector<std::int64_t> columns);

/// Columns of two sources of one shape, one of each in turn.
PackedPointer interleaved(PackedPointer even, PackedPointer odd);

/// Row r, or of one dimension number r, is the source's `place(r)`.
PackedPointer reordered(const PackedPointer& source, const std::function<std::int64_t(std::int64_t)>& place);

/// `change` maps `count` numbers in place.
PackedPointer with_numbers(PackedPointer source, void (*change)(float* numbers, std::int64_t count));

/// Row r times number r / (rows / numbers) of `factors`.
PackedPointer with_factors(PackedPointer source, PackedPointer factors);

}  // namespace headscope::checkpoint
