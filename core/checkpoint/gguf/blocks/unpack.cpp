// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/gguf/blocks/unpack.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "core/base/error.h"
#include "core/checkpoint/gguf/blocks/stored_numbers.h"

namespace headscope::checkpoint::gguf {
namespace {

struct Unpacker {
    BlockType type;
    UnpackBlocks unpack;
    std::array<int, 2> halves;  ///< offsets in a block of float16 scales; -1: none
};

constexpr std::array<Unpacker, 26> kUnpackers = {{
    {BlockType::f32, unpack_f32, {-1, -1}},        {BlockType::f16, unpack_f16, {-1, -1}},
    {BlockType::bf16, unpack_bf16, {-1, -1}},      {BlockType::q4_0, unpack_q4_0, {0, -1}},
    {BlockType::q4_1, unpack_q4_1, {0, 2}},        {BlockType::q5_0, unpack_q5_0, {0, -1}},
    {BlockType::q5_1, unpack_q5_1, {0, 2}},        {BlockType::q8_0, unpack_q8_0, {0, -1}},
    {BlockType::q2_k, unpack_q2_k, {80, 82}},      {BlockType::q3_k, unpack_q3_k, {108, -1}},
    {BlockType::q4_k, unpack_q4_k, {0, 2}},        {BlockType::q5_k, unpack_q5_k, {0, 2}},
    {BlockType::q6_k, unpack_q6_k, {208, -1}},     {BlockType::iq1_s, unpack_iq1_s, {0, -1}},
    {BlockType::iq1_m, unpack_iq1_m, {-1, -1}},    {BlockType::iq2_xxs, unpack_iq2_xxs, {0, -1}},
    {BlockType::iq2_xs, unpack_iq2_xs, {0, -1}},   {BlockType::iq2_s, unpack_iq2_s, {0, -1}},
    {BlockType::iq3_xxs, unpack_iq3_xxs, {0, -1}}, {BlockType::iq3_s, unpack_iq3_s, {0, -1}},
    {BlockType::iq4_nl, unpack_iq4_nl, {0, -1}},   {BlockType::iq4_xs, unpack_iq4_xs, {0, -1}},
    {BlockType::tq1_0, unpack_tq1_0, {52, -1}},    {BlockType::tq2_0, unpack_tq2_0, {64, -1}},
    {BlockType::mxfp4, unpack_mxfp4, {-1, -1}},    {BlockType::nvfp4, unpack_nvfp4, {-1, -1}},
}};

const Unpacker& unpacker(BlockType type) {
    const auto* found =
        std::find_if(kUnpackers.begin(), kUnpackers.end(), [type](const Unpacker& one) { return one.type == type; });
    if (found != kUnpackers.end()) return *found;
    throw Error(ErrorCode::internal, "GGUF", "expected a type with blocks", "found " + std::string(name(type)));
}

/// NaN or infinite.
bool is_bad_half(const std::uint8_t* at) {
    return (word16(at) & 0x7C00U) == 0x7C00U;
}

/// IQ1_M's, in the top nibbles of four words: the last two hold the exponent.
bool is_bad_split_half(const std::uint8_t* block) {
    return (block[55] & 0x70U) == 0x70U && (block[53] & 0xC0U) == 0xC0U;
}

}  // namespace

UnpackBlocks unpack_blocks(BlockType type) {
    return unpacker(type).unpack;
}

std::int64_t first_bad_scale(BlockType type, const std::uint8_t* blocks, std::int64_t count) {
    constexpr std::uint8_t kNotANumber = 255;  // of e8m0
    const std::int64_t size = block_bytes(type);
    const auto first_where = [&](const auto& is_bad) -> std::int64_t {
        for (std::int64_t i = 0; i < count; ++i)
            if (is_bad(blocks + i * size)) return i;
        return -1;
    };
    if (type == BlockType::iq1_m) return first_where(is_bad_split_half);
    if (type == BlockType::mxfp4) return first_where([](const std::uint8_t* block) { return block[0] == kNotANumber; });
    const auto [one, other] = unpacker(type).halves;
    if (one < 0) return -1;
    if (other < 0) return first_where([at = one](const std::uint8_t* block) { return is_bad_half(block + at); });
    return first_where([first = one, second = other](const std::uint8_t* block) {
        return is_bad_half(block + first) || is_bad_half(block + second);
    });
}

}  // namespace headscope::checkpoint::gguf
