// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Cuts a normalised text into the words that the model sees. One class a kind of tokenizer.json's "pre_tokenizer";
// immutable.

#include <memory>

#include "core/base/json/json.h"
#include "core/tokenizer/pieces.h"

namespace headscope::tokenizer {

class PreTokenizer {
public:
    virtual ~PreTokenizer() = default;
    virtual void apply(Pieces& pieces) const = 0;
};

/// Makes the pre-tokenizer of `description`. Error(unsupported) names an unknown kind.
std::unique_ptr<PreTokenizer> make_pre_tokenizer(const JsonView& description);

// The kinds, each in its own file or with similar ones.
std::unique_ptr<PreTokenizer> make_byte_level(const JsonView& description);
std::unique_ptr<PreTokenizer> make_metaspace(const JsonView& description);
std::unique_ptr<PreTokenizer> make_split(const JsonView& description);
std::unique_ptr<PreTokenizer> make_punctuation(const JsonView& description);
std::unique_ptr<PreTokenizer> make_digits(const JsonView& description);
std::unique_ptr<PreTokenizer> make_character_delimiter(const JsonView& description);
std::unique_ptr<PreTokenizer> make_fixed_length(const JsonView& description);
std::unique_ptr<PreTokenizer> make_bert_pre_tokenizer();
std::unique_ptr<PreTokenizer> make_unicode_scripts();
std::unique_ptr<PreTokenizer> make_whitespace();
std::unique_ptr<PreTokenizer> make_whitespace_split();

}  // namespace headscope::tokenizer
