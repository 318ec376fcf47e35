// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Special tokens of a tokenizer: which they are, what surrounds a text or a pair, and how the tokenizers made here get
// them. Threads: any.

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/corruption.h"
#include "core/data/tokenizer_choice.h"

namespace headscope::data {

/// Those of `tokenizer`: its words' of a hash embedding; else what tokenizer_config.json among `files` names (cls_token
/// or bos_token, sep_token or eos_token, pad_token, mask_token), else the usual ones ([CLS], <s>; [SEP], </s>; [PAD],
/// <pad>; [MASK], <mask>); others: its unk token and all that tokenizer.json calls special.
SpecialIds special_ids(const tokenizer::Tokenizer& tokenizer, const std::vector<TokenizerFile>& files);

/// Special tokens around texts.
struct Frame {
    std::vector<std::int64_t> before, after;                     ///< of one text
    std::vector<std::int64_t> pair_before, between, pair_after;  ///< of two
};
/// Tokens that `tokenizer` puts around texts by itself.
Frame frame_of(const tokenizer::Tokenizer& tokenizer);

/// A tokenizer.json of ours with <s> <pad> </s> <unk> <mask> behind its other tokens, which puts <s> and </s> around
/// texts (<s> A </s></s> B </s>), and the tokenizer_config.json that names them. One of whole words reads others as
/// <unk>.
ChosenTokenizer with_special_tokens(const ChosenTokenizer& made, const std::string& where);

}  // namespace headscope::data
