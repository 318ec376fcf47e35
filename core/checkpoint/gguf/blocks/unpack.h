// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Blocks of GGUF to float32, bit-equal to gguf 0.19's dequantize. Compile without contraction of products and sums
// (-ffp-contract=off).

#include <cstdint>

#include "core/checkpoint/gguf/block_type.h"

namespace headscope::checkpoint::gguf {

/// Expands `count` blocks, which may lie at any address.
using UnpackBlocks = void (*)(const std::uint8_t* blocks, std::int64_t count, float* into);

/// The function for a type with is_dequantized().
UnpackBlocks unpack_blocks(BlockType type);

/// Number of the first of `count` blocks with a scale that is NaN or infinite; -1: none. Plain numbers have no scale.
std::int64_t first_bad_scale(BlockType type, const std::uint8_t* blocks, std::int64_t count);

// One each, grouped by file.
void unpack_f32(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_f16(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_bf16(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_q4_0(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_q4_1(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_q5_0(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_q5_1(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_q8_0(const std::uint8_t* blocks, std::int64_t count, float* into);

void unpack_q2_k(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_q3_k(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_q4_k(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_q5_k(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_q6_k(const std::uint8_t* blocks, std::int64_t count, float* into);

void unpack_iq1_s(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_iq1_m(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_iq2_xxs(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_iq2_xs(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_iq2_s(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_iq3_xxs(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_iq3_s(const std::uint8_t* blocks, std::int64_t count, float* into);

void unpack_iq4_nl(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_iq4_xs(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_tq1_0(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_tq2_0(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_mxfp4(const std::uint8_t* blocks, std::int64_t count, float* into);
void unpack_nvfp4(const std::uint8_t* blocks, std::int64_t count, float* into);

}  // namespace headscope::checkpoint::gguf
