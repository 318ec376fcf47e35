// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Special tokens of a tokenizer: which they are, what surrounds a text or a pair, and how the tokenizers made here get
// them. Threads: any.

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/batch/corruption.h"
#include "core/data/tokenizer_choice.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::data {

/// Those of `tokenizer`: its words' of a hash embedding; else what tokenizer_config.json among `files` names (cls_token
/// or bos_token, sep_token or eos_token, pad_token, mask_token), else the usual ones ([CLS], <s>; [SEP], </s>; [PAD],
/// <pad>; [MASK], <mask>); others: its unk token and all that tokenizer.json calls special.
SpecialIds special_ids(const tokenizer::Tokenizer& tokenizer, const std::vector<TokenizerFile>& files);

/// Tokens that `tokenizer` adds around one text and around two.
struct Frame {
    std::vector<tokenizer::FramePart> one, two;

    /// Inserted tokens of one text, or of two.
    std::int64_t inserted(bool pair) const;
    /// True if a token of a pair has a type other than 0.
    bool has_types() const;
};
/// Error usage for one that has a text more than once, which leaves no way to cut it to a length.
Frame frame_of(const tokenizer::Tokenizer& tokenizer);
/// Puts `end` behind one text where nothing is inserted, so that no source is empty.
void end_sources(Frame& frame, std::int64_t end);

/// A tokenizer.json of ours with <s> <pad> </s> <unk> <mask> behind its other tokens, which puts <s> and </s> around
/// texts (<s> A </s></s> B </s>), and the tokenizer_config.json that names them. One of whole words reads others as
/// <unk>.
ChosenTokenizer with_special_tokens(const ChosenTokenizer& made, const std::string& where);

}  // namespace headscope::data
