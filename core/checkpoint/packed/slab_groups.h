// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// HQQ: the flattened matrix as a matrix of groups, packed by slabs of its rows.

#include "core/checkpoint/packed/part_checks.h"

namespace headscope::checkpoint {

/// (q - zero) scale. Parts: W_q [packed rows, grouped columns] of bytes or int32, scale, zero. Row k s + i of the
/// grouped matrix is field k, from the top, of packed row i of s.
class SlabGroups final : public PackedTensor {
public:
    struct Layout {
        unsigned bits = 4;    ///< of a field
        unsigned fields = 2;  ///< in a word of 1 byte, or 4 bytes if `words`
        bool words = false;
        std::int64_t packed_rows = 0, grouped_columns = 0;
        bool by_column = false;  ///< axis 0: a scale for each column of the grouped matrix, else for each row
        DataType scales = DataType::f16, zeros = DataType::f16;
    };
    SlabGroups(std::vector<std::int64_t> shape, const Layout& layout, std::vector<PackedPart> parts);
    void unpack(const PartBytes& parts, std::int64_t first, std::int64_t count, float* into) const override;
    void check(const PartBytes& parts) const override;

private:
    Layout layout_;
};

}  // namespace headscope::checkpoint
