// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tokens as users type them. Threads: any. Errors: Error (usage), whose place is the option.

#include <cstdint>
#include <string>
#include <vector>

namespace headscope::tokenizer {
class Tokenizer;
}
namespace headscope::store {
struct AskRecord;
}

namespace headscope::ask {

std::int64_t whole_number(const std::string& option, const std::string& text);

/// "464,\"the\"": ids, or quoted strings that must be one token each. `tokenizer` may be null: ids alone.
std::vector<std::int64_t> parse_tokens(const std::string& option, const std::string& list,
                                       const tokenizer::Tokenizer* tokenizer);

/// The vocabulary of what a model with a decoder answers; null for null.
const tokenizer::Tokenizer* writer_of(const tokenizer::Tokenizer* tokenizer);

/// Fills in the texts of the ids in tables of tokens, where they are missing: of the decoder's vocabulary if texts have
/// targets.
void add_words(store::AskRecord& record, const tokenizer::Tokenizer& tokenizer);

}  // namespace headscope::ask
