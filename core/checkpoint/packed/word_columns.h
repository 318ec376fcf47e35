// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// GPTQ and AWQ: matrices stored as [in, out], in words of 32 bits.

#include "core/checkpoint/packed/part_checks.h"

namespace headscope::checkpoint {

/// Codes as a stream of bits down the rows: scales[g] (q - z). Parts: qweight [in b/32, out], qzeros [groups, out
/// b/32], scales [groups, out], and g_idx [in] if there is one.
class GptqTensor final : public PackedTensor {
public:
    struct Layout {
        std::int64_t in = 0, out = 0, groups = 0, group_size = 0;
        unsigned bits = 4;
        bool zeros_minus_one = true;  ///< the stored zero points lack 1 (checkpoint format "gptq")
        bool indexed = false;         ///< the last part is g_idx
        DataType scales = DataType::f16;
    };
    GptqTensor(const Layout& layout, std::vector<PackedPart> parts);
    void unpack(const PartBytes& parts, std::int64_t first, std::int64_t count, float* into) const override;
    void check(const PartBytes& parts) const override;

private:
    std::vector<std::uint32_t> groups(const PartBytes& parts) const;
    Layout layout_;
};

/// Nibbles along the columns, in the order 0, 2, 4, 6, 1, 3, 5, 7: scales[g] (q - z). Parts: qweight [in, out/8],
/// qzeros [in/group, out/8], scales [in/group, out].
class AwqTensor final : public PackedTensor {
public:
    AwqTensor(std::int64_t out, std::int64_t in, std::int64_t group_size, DataType scales,
              std::vector<PackedPart> parts);
    void unpack(const PartBytes& parts, std::int64_t first, std::int64_t count, float* into) const override;
    void check(const PartBytes& parts) const override;

private:
    std::size_t group_size_;
    DataType scales_;
};

}  // namespace headscope::checkpoint
