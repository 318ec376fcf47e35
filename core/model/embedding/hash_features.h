// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Batch::features of tokens that a WordTokenizer gave. Threads: any.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/tokenizer/hashed/word_hash.h"

namespace headscope::model {

/// [1, L, F] of L tokens with their ids and pieces; undefined for emb and a table. Special tokens have zeros.
at::Tensor hash_features(const tokenizer::WordHash& hash, std::span<const std::int32_t> ids,
                         const std::vector<std::string>& pieces);
/// The same from the bits of each token as analysis files have them (/tokens/hash; WordHash::hex). Error(format) names
/// the token whose bits are none, Error(mismatch) the one whose piece is no character.
at::Tensor stored_features(const tokenizer::HashSettings& settings, std::span<const std::int32_t> ids,
                           const std::vector<std::string>& pieces, const std::vector<std::string>& hashes);

}  // namespace headscope::model
