// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/packed/packed_type.h"

#include <algorithm>
#include <array>

namespace headscope::kernels {
namespace {

constexpr std::array<PackedLayout, 25> kLayouts = {{
    {PackedType::f16, "F16", 1, 2},           {PackedType::q4_0, "Q4_0", 32, 18},
    {PackedType::q4_1, "Q4_1", 32, 20},       {PackedType::q5_0, "Q5_0", 32, 22},
    {PackedType::q5_1, "Q5_1", 32, 24},       {PackedType::q8_0, "Q8_0", 32, 34},
    {PackedType::q2_k, "Q2_K", 256, 84},      {PackedType::q3_k, "Q3_K", 256, 110},
    {PackedType::q4_k, "Q4_K", 256, 144},     {PackedType::q5_k, "Q5_K", 256, 176},
    {PackedType::q6_k, "Q6_K", 256, 210},     {PackedType::iq2_xxs, "IQ2_XXS", 256, 66},
    {PackedType::iq2_xs, "IQ2_XS", 256, 74},  {PackedType::iq3_xxs, "IQ3_XXS", 256, 98},
    {PackedType::iq1_s, "IQ1_S", 256, 50},    {PackedType::iq4_nl, "IQ4_NL", 32, 18},
    {PackedType::iq3_s, "IQ3_S", 256, 110},   {PackedType::iq2_s, "IQ2_S", 256, 82},
    {PackedType::iq4_xs, "IQ4_XS", 256, 136}, {PackedType::iq1_m, "IQ1_M", 256, 56},
    {PackedType::bf16, "BF16", 1, 2},         {PackedType::tq1_0, "TQ1_0", 256, 54},
    {PackedType::tq2_0, "TQ2_0", 256, 66},    {PackedType::mxfp4, "MXFP4", 32, 17},
    {PackedType::nvfp4, "NVFP4", 64, 36},
}};

}  // namespace

const PackedLayout* packed_layout(PackedType type) {
    const auto* found = std::find_if(kLayouts.begin(), kLayouts.end(),
                                     [type](const PackedLayout& layout) { return layout.type == type; });
    return found == kLayouts.end() ? nullptr : found;
}

}  // namespace headscope::kernels
