// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Changes to a text before it is split. One class per kind of tokenizer.json's "normalizer"; immutable.

#include <memory>

#include "core/base/json/json.h"
#include "core/tokenizer/aligned_text.h"

namespace headscope::tokenizer {

class Normalizer {
public:
    virtual ~Normalizer() = default;
    virtual void apply(AlignedText& text) const = 0;
};

/// Makes the normalizer of `description`. Error(unsupported) names an unknown kind.
std::unique_ptr<Normalizer> make_normalizer(const JsonView& description);

// The kinds, each in its own file or with similar ones.
std::unique_ptr<Normalizer> make_normal_form(bool compatible, bool composed);
std::unique_ptr<Normalizer> make_bert_normalizer(const JsonView& description);
std::unique_ptr<Normalizer> make_lowercase();
std::unique_ptr<Normalizer> make_strip_accents();
std::unique_ptr<Normalizer> make_nmt();
std::unique_ptr<Normalizer> make_byte_level_normalizer();
std::unique_ptr<Normalizer> make_precompiled(const JsonView& description);
/// For a document made from a sentencepiece model; no kind of tokenizer.json.
std::unique_ptr<Normalizer> make_sentence_piece_rules(const JsonView& description);
std::unique_ptr<Normalizer> make_strip(const JsonView& description);
std::unique_ptr<Normalizer> make_prepend(const JsonView& description);
std::unique_ptr<Normalizer> make_replace(const JsonView& description);

}  // namespace headscope::tokenizer
