// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// One sequence of a batch as the vector loops see it: plain numbers and pointers. No inline functions but constexpr
// ones: this header is read by code that is compiled once per SIMD target.
//
// Scores are kept in base 2: t = s * log2(e), the factor being folded into the queries, so that every exponential is
// a power of two. Biases, caps and sink logits are scaled alike.

#include <atomic>
#include <cstdint>
#include <limits>

#include "kernels/summary/attention_dropout.h"
#include "kernels/summary/both.h"
#include "kernels/tensor_view.h"

namespace headscope::kernels::cpu {

inline constexpr float kMasked = -1e30F;        ///< t of a pair that is not allowed; never -inf, since 0 * inf is NaN
inline constexpr std::int64_t kTileKeys = 256;  ///< columns of a tile
inline constexpr std::int64_t kMaxBlockRows = 96;  ///< rows of a query block at most; a multiple of every target's rows
inline constexpr std::int64_t kMostRows = 12;      ///< rows of a register block on the widest target
inline constexpr std::int64_t kMostPanel = 32;     ///< columns of a panel of packed keys on the widest target
inline constexpr float kSmallestNormal = 0x1p-126F;
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Floats up to a multiple of 16: whole vectors on every target, whole cache lines.
constexpr std::int64_t pad_to_line(std::int64_t floats) {
    return (floats + 15) / 16 * 16;
}

/// [heads, length, size] of one sequence; strides in elements.
struct HeadMatrix {
    const void* data = nullptr;
    ElementType type = ElementType::float32;
    std::int64_t head_stride = 0, row_stride = 0;
};

struct Sequence {
    std::int64_t heads = 0, key_heads = 0, queries = 0, keys = 0, key_size = 0, value_size = 0;
    HeadMatrix query, key, value;
    std::int64_t query_end = 0, key_begin = 0, key_end = 0;  ///< what padding leaves
    std::int64_t query_offset = 0;
    bool causal = false;
    std::int64_t window_left = -1, window_right = -1, first_keys = 0, window_segment = 1;
    std::int64_t far_distance = -1, near_begin = 0;  ///< as of ScoreRule
    std::int64_t block_size = 0, blocks = 0;
    const std::uint8_t* visible = nullptr;  ///< [heads, blocks]
    bool own_block = true;                  ///< a query sees the keys of its own block
    float query_factor = 1.0F;              ///< scale * log2(e)
    float soft_cap = 0.0F;                  ///< base 2; 0: none
    const float* relative = nullptr;        ///< [heads, relative_length] base 2: slopes and distance bias; null: none
    std::int64_t relative_length = 0, relative_zero = 0;  ///< of position j - i': column j - i' + relative_zero
    std::int64_t relative_begin = 0, relative_end = 0;    ///< outside these columns all heads' are 0
    const float* sink_logits = nullptr;                   ///< [heads] base 2; null: none
    const float* offsets = nullptr;                       ///< [heads, queries] of the elastic normaliser
    const float* packed_keys = nullptr;  ///< [key_heads, panels, key_size, panel width]: keys of a panel side by side
    std::int64_t packed_head_stride = 0;
    std::uint64_t dropout = 0;            ///< dropout_sequence()
    std::uint32_t dropout_threshold = 0;  ///< 0: none
    float dropout_factor = 1.0F;
    const std::atomic<bool>* cancel = nullptr;
};

/// Row constants, [heads, queries] each. softmax: A = 2^(t - shift) * factor. sparsemax:
/// A = ln 2 * max(t - shift - factor, 0). entmax: A = (ln 2 / 2 * max(t - shift - factor, 0))^2. elastic: as softmax,
/// with Sequence::offsets. Taylor: A = (1 + s + t2) * factor, or 1 / n + s * shift + t2 * factor. Two numbers, because
/// one float32 near +-1000 would cost four digits. `minimum` is the smallest allowed score of the row,
/// +inf for a row that sees no key.
struct RowConstants {
    float* shift = nullptr;
    float* factor = nullptr;
    float* minimum = nullptr;
};

/// Sums of the first pass over a block of rows of one head. Scores in base 2.
struct BlockScores {
    std::int64_t rows = 0, pairs = 0;  ///< rows that see a key, allowed pairs
    double entropy = 0.0, squares = 0.0, mass = 0.0, virtual_sink = 0.0;
    double sum = 0.0, squared_deviations = 0.0;
    float minimum = 0.0F, maximum = 0.0F;
    std::uint64_t above[3] = {0, 0, 0};
};

/// Sums of the second pass over a block of rows of one head. Entropy, squares and mass only for normalisers whose
/// first pass does not give them.
struct BlockWeights {
    double entropy = 0.0, squares = 0.0, mass = 0.0, sink = 0.0, distance = 0.0, duplicate = 0.0, induction = 0.0;
    std::int64_t zeros = 0;
};

}  // namespace headscope::kernels::cpu
