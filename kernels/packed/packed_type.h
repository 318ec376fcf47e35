// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Block types of GGUF that packed_product() multiplies.

#include <cstdint>
#include <string_view>

namespace headscope::kernels {

/// Values are GGUF's type numbers.
enum class PackedType : std::uint32_t {
    f16 = 1,
    q4_0 = 2,
    q4_1 = 3,
    q5_0 = 6,
    q5_1 = 7,
    q8_0 = 8,
    q2_k = 10,
    q3_k = 11,
    q4_k = 12,
    q5_k = 13,
    q6_k = 14,
    iq2_xxs = 16,
    iq2_xs = 17,
    iq3_xxs = 18,
    iq1_s = 19,
    iq4_nl = 20,
    iq3_s = 21,
    iq2_s = 22,
    iq4_xs = 23,
    iq1_m = 29,
    bf16 = 30,
    tq1_0 = 34,
    tq2_0 = 35,
    mxfp4 = 39,
    nvfp4 = 40,
};

struct PackedLayout {
    PackedType type;
    std::string_view name;    ///< "Q4_K"
    std::int64_t values = 0;  ///< of a block
    std::int64_t bytes = 0;
};

/// Null for numbers that are no PackedType.
const PackedLayout* packed_layout(PackedType type);

}  // namespace headscope::kernels
