// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Element types of GGUF. Each is a block with a fixed count of values and of bytes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headscope::checkpoint::gguf {

/// Numbers as files store them.
enum class BlockType : std::uint32_t {
    f32 = 0,
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
    i8 = 24,
    i16 = 25,
    i32 = 26,
    i64 = 27,
    f64 = 28,
    iq1_m = 29,
    bf16 = 30,
    tq1_0 = 34,
    tq2_0 = 35,
    mxfp4 = 39,
    nvfp4 = 40,
};

std::string_view name(BlockType type);  ///< "Q4_K"
std::int64_t block_values(BlockType type);
std::int64_t block_bytes(BlockType type);
/// False for integers and F64, which have no dequantized form in GGUF's library.
bool is_dequantized(BlockType type);

/// The type with this number; empty where it is not read.
std::optional<BlockType> block_type(std::uint32_t number);
/// A number that is not read, for errors: "Q4_2 (number 4), removed from GGUF", "number 77".
std::string unread_type_text(std::uint32_t number);

}  // namespace headscope::checkpoint::gguf
