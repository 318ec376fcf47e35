// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Rows of codes of 1 to 8 bits with a scale per group of columns: compressed-tensors' pack-quantized and MLX's affine.

#include "core/checkpoint/packed/part_checks.h"

namespace headscope::checkpoint {

class StreamRows final : public PackedTensor {
public:
    enum class Rule {
        symmetric,    ///< scale (u - 2^(bits - 1)). Parts: codes, scales
        zero_points,  ///< scale (u - z). Parts: codes, scales, int32 zero points [rows bits / 32, groups], packed down
        affine,       ///< q scale + bias. Parts: codes, scales, biases
    };
    struct Layout {
        Rule rule = Rule::symmetric;
        unsigned bits = 4;
        bool whole_words = false;  ///< 32 / bits codes in a word; else a stream that crosses words
        std::int64_t group_size = 0, groups = 0;
        bool one_scale = false;  ///< one row of scales serves all rows
        bool indexed = false;    ///< the last part is g_idx [columns]
        DataType scales = DataType::f32;
    };
    StreamRows(std::vector<std::int64_t> shape, const Layout& layout, std::vector<PackedPart> parts);
    void unpack(const PartBytes& parts, std::int64_t first, std::int64_t count, float* into) const override;
    void check(const PartBytes& parts) const override;
    std::shared_ptr<const PackedTensor> entry(std::int64_t index) const override;

private:
    std::vector<std::uint32_t> groups(const PartBytes& parts) const;
    std::int32_t zero_point(const PartBytes& parts, std::size_t row, std::size_t group) const;
    Layout layout_;
};

}  // namespace headscope::checkpoint
