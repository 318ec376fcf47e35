// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Dropout on attention weights (Srivastava et al. 2014; Vaswani et al. 2017 before the values): O = (m A / (1 - p)) V,
// m 0 with probability p. Each m is a pure function of seed, sequence, head and the positions of query and key, so
// tiles, threads and the backward pass agree on it and nothing is stored.

#include <algorithm>
#include <cstdint>

namespace headscope::kernels {

/// Part of a ScoreRule that the training passes obey; attention() with statistics refuses it.
struct AttentionDropout {
    double share = 0.0;  ///< p of [0, 1); 0: none
    std::uint64_t seed = 0;
    std::int64_t first_sequence = 0;  ///< number of the batch's first sequence in the step's whole batch
};

/// Finalizer of MurmurHash3 (Appleby, public domain): a bijection whose result's bits depend on all of the number's.
constexpr std::uint64_t mixed_bits(std::uint64_t x) {
    x = (x ^ (x >> 33U)) * 0xFF51AFD7ED558CCDU;
    x = (x ^ (x >> 33U)) * 0xC4CEB9FE1A85EC53U;
    return x ^ (x >> 33U);
}

/// Key of sequence `b` of the batch.
constexpr std::uint64_t dropout_sequence(const AttentionDropout& dropout, std::int64_t b) {
    return mixed_bits(mixed_bits(dropout.seed + 1) ^ static_cast<std::uint64_t>(dropout.first_sequence + b));
}

/// Key of one query, at `position` of its text, of one head.
constexpr std::uint64_t dropout_row(std::uint64_t sequence, std::int64_t head, std::int64_t position) {
    const std::uint64_t of_head = mixed_bits(sequence + static_cast<std::uint64_t>(head) * 0x9E3779B97F4A7C15U);
    return mixed_bits(of_head ^ static_cast<std::uint64_t>(position));
}

/// Uniform 32 bits of one pair, from two rounds with half the row's key each; 32-bit steps, which vectors have.
constexpr std::uint32_t dropout_bits(std::uint64_t row, std::int64_t key) {
    auto x =
        static_cast<std::uint32_t>(static_cast<std::uint64_t>(key)) * 0x9E3779B9U + static_cast<std::uint32_t>(row);
    x = (x ^ (x >> 16U)) * 0x85EBCA6BU;
    x ^= static_cast<std::uint32_t>(row >> 32U);
    x = (x ^ (x >> 13U)) * 0xC2B2AE35U;
    return x ^ (x >> 16U);
}

/// A weight is dropped if its bits lie below this; 0: none is.
constexpr std::uint32_t dropout_threshold(double share) {
    if (!(share > 0.0)) return 0;
    return static_cast<std::uint32_t>(std::clamp(share * 0x1p32, 1.0, 0x1p32 - 1.0));
}

/// Factor of the weights that stay.
constexpr float dropout_factor(double share) {
    return static_cast<float>(1.0 / (1.0 - share));
}

}  // namespace headscope::kernels
