// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/data/batch/encoder_source.h"
#include "core/data/batch/item_source.h"
#include "core/data/batch/span_source.h"
#include "core/data/objectives/list.h"
#include "core/data/settings.h"
#include "core/data/special_tokens.h"

namespace headscope::data {

/// Makes sequences of tokens as a job's objective wants them; not for next_token, which reads tokens as they lie.
class ObjectiveReader {
public:
    /// Error usage for a tokenizer that lacks what the objective needs, and for lengths without room for a token.
    ObjectiveReader(const DataSettings& settings, const ChosenTokenizer& chosen);

    const SpecialIds& special() const noexcept { return form_.special; }
    const TokenCode& code() const noexcept { return form_.code; }
    bool has_types() const { return form_.frame.has_types(); }  ///< of pairs
    bool keeps_end() const noexcept { return form_.keep_end; }  ///< of items that are cut
    /// Tokens of text in a sequence of encoders.
    std::int64_t row_tokens() const noexcept { return form_.length - 2; }
    /// The id that ends a target; -1: none.
    std::int64_t separator() const { return kind_of(form_.objective).translates ? special().last : -1; }
    /// All of the objective that sequences follow from.
    std::string key() const;

    std::unique_ptr<const BatchSource> source(TextRows rows, std::uint64_t seed) const;
    std::unique_ptr<const BatchSource> source(ItemRows rows) const;
    std::unique_ptr<const BatchSource> question_source(QuestionRows rows, std::uint64_t seed) const;

private:
    ItemForm form_;
};

/// Error usage for an objective that is none, and for what data of it cannot have.
void check_objective(const DataSettings& settings, bool hashed);

/// The tokenizer of a model that hashes words, named by all that its numbers follow from.
ChosenTokenizer word_tokenizer(const HashedWords& words);

}  // namespace headscope::data
