// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace headscope::model {

/// What a model reads. Equal lengths within a batch is the fast way; shorter sequences are padded at the end and say so
/// in `lengths`.
struct Batch {
    at::Tensor ids;                     ///< [B, L] int64
    std::vector<std::int64_t> lengths;  ///< [B] or empty: all L
    at::Tensor token_types;             ///< [B, L] int64 or undefined: zeros (BERT)

    /// Of an encoder-decoder, whose encoder reads `ids`: what its decoder reads, [B, Lt] int64, the start token first.
    /// With a cache that holds tokens already, `ids` are left out.
    at::Tensor target{};
    std::vector<std::int64_t> target_lengths{};  ///< [B] or empty: all Lt

    /// Of a hash embedding whose words' ids do not tell it what they are (hash_features.h): [B, L, T] uint8, the bits
    /// of each word, 0 or 1; or of characters [B, L, 1] int64, code points. What stands at special tokens is not read.
    at::Tensor features{};

    /// What an objective compares with (objective.h): for each of predicted() a token or class, [B] a class of each
    /// text, or -1: not counted.
    at::Tensor labels{};
    at::Tensor values{};  ///< [B] float32 in place of labels: the number that is to be said of each text

    bool padded() const { return shorter(lengths, ids); }
    bool target_padded() const { return shorter(target_lengths, target); }

    /// The tokens whose hidden states forward() returns and whose successors the head predicts.
    const at::Tensor& predicted() const { return target.defined() ? target : ids; }
    const std::vector<std::int64_t>& predicted_lengths() const { return target.defined() ? target_lengths : lengths; }

private:
    static bool shorter(const std::vector<std::int64_t>& lengths, const at::Tensor& ids) {
        for (const std::int64_t length : lengths) {
            if (length != ids.size(1)) return true;
        }
        return false;
    }
};

}  // namespace headscope::model
