// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/gguf/block_type.h"

#include <algorithm>
#include <array>

namespace headscope::checkpoint::gguf {
namespace {

struct BlockDescription {
    BlockType type;
    std::string_view name;
    int values;
    int bytes;
};

constexpr std::array<BlockDescription, 31> kBlocks = {{
    {BlockType::f32, "F32", 1, 4},
    {BlockType::f16, "F16", 1, 2},
    {BlockType::q4_0, "Q4_0", 32, 18},
    {BlockType::q4_1, "Q4_1", 32, 20},
    {BlockType::q5_0, "Q5_0", 32, 22},
    {BlockType::q5_1, "Q5_1", 32, 24},
    {BlockType::q8_0, "Q8_0", 32, 34},
    {BlockType::q2_k, "Q2_K", 256, 84},
    {BlockType::q3_k, "Q3_K", 256, 110},
    {BlockType::q4_k, "Q4_K", 256, 144},
    {BlockType::q5_k, "Q5_K", 256, 176},
    {BlockType::q6_k, "Q6_K", 256, 210},
    {BlockType::iq2_xxs, "IQ2_XXS", 256, 66},
    {BlockType::iq2_xs, "IQ2_XS", 256, 74},
    {BlockType::iq3_xxs, "IQ3_XXS", 256, 98},
    {BlockType::iq1_s, "IQ1_S", 256, 50},
    {BlockType::iq4_nl, "IQ4_NL", 32, 18},
    {BlockType::iq3_s, "IQ3_S", 256, 110},
    {BlockType::iq2_s, "IQ2_S", 256, 82},
    {BlockType::iq4_xs, "IQ4_XS", 256, 136},
    {BlockType::i8, "I8", 1, 1},
    {BlockType::i16, "I16", 1, 2},
    {BlockType::i32, "I32", 1, 4},
    {BlockType::i64, "I64", 1, 8},
    {BlockType::f64, "F64", 1, 8},
    {BlockType::iq1_m, "IQ1_M", 256, 56},
    {BlockType::bf16, "BF16", 1, 2},
    {BlockType::tq1_0, "TQ1_0", 256, 54},
    {BlockType::tq2_0, "TQ2_0", 256, 66},
    {BlockType::mxfp4, "MXFP4", 32, 17},
    {BlockType::nvfp4, "NVFP4", 64, 36},
}};

struct UnreadType {
    std::uint32_t number;
    std::string_view name;
    bool removed;
};

constexpr std::array<UnreadType, 11> kUnread = {{
    {4, "Q4_2", true},
    {5, "Q4_3", true},
    {9, "Q8_1", false},
    {15, "Q8_K", false},
    {31, "Q4_0_4_4", true},
    {32, "Q4_0_4_8", true},
    {33, "Q4_0_8_8", true},
    {36, "IQ4_NL_4_4", true},
    {37, "IQ4_NL_4_8", true},
    {38, "IQ4_NL_8_8", true},
    {41, "Q1_0", false},
}};

const BlockDescription& describe(BlockType type) {
    return *std::find_if(kBlocks.begin(), kBlocks.end(),
                         [type](const BlockDescription& block) { return block.type == type; });
}

}  // namespace

std::string_view name(BlockType type) {
    return describe(type).name;
}
std::int64_t block_values(BlockType type) {
    return describe(type).values;
}
std::int64_t block_bytes(BlockType type) {
    return describe(type).bytes;
}

bool is_dequantized(BlockType type) {
    return type < BlockType::i8 || type > BlockType::f64;
}

std::optional<BlockType> block_type(std::uint32_t number) {
    for (const BlockDescription& block : kBlocks)
        if (static_cast<std::uint32_t>(block.type) == number) return block.type;
    return std::nullopt;
}

std::string unread_type_text(std::uint32_t number) {
    for (const UnreadType& type : kUnread) {
        if (type.number != number) continue;
        return std::string(type.name) + " (number " + std::to_string(number) + ")" +
               (type.removed ? ", removed from GGUF" : "");
    }
    return "number " + std::to_string(number);
}

}  // namespace headscope::checkpoint::gguf
