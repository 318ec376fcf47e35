// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// bitsandbytes, 4 bits: the flattened matrix as nibbles, the high one first, and a scale per block of values.

#include "core/checkpoint/packed/part_checks.h"

namespace headscope::checkpoint {

/// table[code] absmax[block]. Parts: codes, absmax, quant_map (16 float32, must equal the type's table). With double
/// quantization absmax is a byte per block: nested_quant_map[a] nested_absmax[block / nested size] + offset, and the
/// parts continue with nested_absmax and nested_quant_map (256 float32).
class FlatBlocks final : public PackedTensor {
public:
    struct Layout {
        bool nf4 = true;  ///< else fp4
        std::int64_t block = 64;
        std::int64_t nested_block = 0;  ///< 0: absmax is float32
        float nested_offset = 0;
    };
    FlatBlocks(std::vector<std::int64_t> shape, const Layout& layout, std::vector<PackedPart> parts);
    void unpack(const PartBytes& parts, std::int64_t first, std::int64_t count, float* into) const override;
    void check(const PartBytes& parts) const override;

private:
    Layout layout_;
};

/// The 16 numbers of QLoRA (arXiv 2305.14314, appendix E), or bitsandbytes' fp4.
std::array<float, 16> bitsandbytes_table(bool nf4);

}  // namespace headscope::checkpoint
