// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// One token that every sequence has at one position, whatever its text says there (Lazy Attention, Fig. 2: Mask@k):
// it is read in the place of the text's token. Targets stay the text's own: nothing is to say the fixed token, and what
// it covers is still to be said by the token before it.

#include <cstdint>
#include <memory>

#include "core/data/data_set.h"
#include "core/data/tokenizer_choice.h"

namespace headscope::data {

/// The given id, else the tokenizer's mask token, else its unknown token (mask_token and unk_token of
/// tokenizer_config.json, or the first known of [MASK], <mask>, [UNK], <unk>). Error usage without one.
std::int64_t fixed_id(const FixedToken& token, const tokenizer::Tokenizer& tokenizer,
                      const std::vector<TokenizerFile>& files);

/// `data` with that token in every sequence of both splits, in the order that they had; its hash is another one.
/// Error usage for an id that `data` does not have.
std::shared_ptr<const DataSet> with_fixed_token(std::shared_ptr<const DataSet> data, const FixedToken& token);

}  // namespace headscope::data
