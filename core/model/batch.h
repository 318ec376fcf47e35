// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace headscope::model {

/// Input of a model. Batches of equal lengths are fastest; shorter sequences are padded at the end, with their sizes in
/// `lengths`.
struct Batch {
    at::Tensor ids;                     ///< [B, L] int64
    std::vector<std::int64_t> lengths;  ///< [B] or empty: all L
    at::Tensor token_types;             ///< [B, L] int64 or undefined: zeros (BERT)

    /// For an encoder-decoder, whose encoder reads `ids`: the decoder's input, [B, Lt] int64, the start token first.
    /// Omit `ids` with a cache that holds tokens already.
    at::Tensor target{};
    std::vector<std::int64_t> target_lengths{};  ///< [B] or empty: all Lt

    /// For a hash embedding whose ids do not determine words (hash_features.h): [B, L, T] uint8, the bits of each word,
    /// 0 or 1; or for characters [B, L, 1] int64, code points. Values at special tokens are not read.
    at::Tensor features{};

    /// Targets of an objective (objective.h): a token or class for each of predicted(), [B] a class of each text, or
    /// -1: not counted; [B, 2] the first and the last token of an answer.
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
