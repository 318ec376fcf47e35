// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Rows of codes (int8, E4M3, E2M1) times a scale per block: fp8 in all forms, MXFP4, MXFP8, NVFP4, int8.

#include "core/checkpoint/packed/part_checks.h"

namespace headscope::checkpoint {

enum class CodeType {
    int8,
    e4m3,
    e2m1,  ///< two in a byte, the low nibble first
};

/// Element [r, c] is code (scale[r / block_rows, c / block_columns] by a factor). Parts: codes, scales, then the global
/// scale or the zero points if the layout has them.
class ScaledCodes final : public PackedTensor {
public:
    enum class Factor {
        none,
        divide_by_127,  ///< bitsandbytes int8
        divide,         ///< by the one number of part 2 (float32)
        multiply,       ///< with the one number of part 2 (float32)
    };
    struct Layout {
        CodeType codes = CodeType::e4m3;
        DataType scales = DataType::f32;  ///< F8_E8M0 for bytes that are exponents
        std::int64_t block_rows = 1, block_columns = 1;
        Factor factor = Factor::none;
        bool zero_points = false;  ///< part 2 is an int8 for each scale: scale (q - z)
    };
    ScaledCodes(std::vector<std::int64_t> shape, const Layout& layout, std::vector<PackedPart> parts);
    void unpack(const PartBytes& parts, std::int64_t first, std::int64_t count, float* into) const override;
    void check(const PartBytes& parts) const override;
    std::shared_ptr<const PackedTensor> entry(std::int64_t index) const override;

private:
    Layout layout_;
};

}  // namespace headscope::checkpoint
