// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/token_list.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/store/ask/ask_file.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::ask {
namespace {

[[noreturn]] void refuse_tokens(const std::string& option, const std::string& expected, const std::string& found) {
    throw Error(ErrorCode::usage, option, "expected " + expected, "found " + found);
}

/// The end of a quoted string that begins at `begin`, behind its quote.
std::size_t quoted_end(const std::string& option, const std::string& list, std::size_t begin) {
    const std::size_t end = list.find('"', begin + 1);
    if (end == std::string::npos) refuse_tokens(option, "a closing quote", escaped(list.substr(begin)));
    return end + 1;
}

}  // namespace

std::int64_t whole_number(const std::string& option, const std::string& text) {
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end) refuse_tokens(option, "a number", escaped(text));
    return value;
}

std::vector<std::int64_t> parse_tokens(const std::string& option, const std::string& list,
                                       const tokenizer::Tokenizer* tokenizer) {
    std::vector<std::int64_t> tokens;
    for (std::size_t at = 0; at < list.size();) {
        if (list[at] != '"') {
            const std::size_t end = std::min(list.find(',', at), list.size());
            tokens.push_back(whole_number(option, list.substr(at, end - at)));
            at = end;
        } else {
            const std::size_t end = quoted_end(option, list, at);
            const std::string text = list.substr(at + 1, end - at - 2);
            if (tokenizer == nullptr) refuse_tokens(option, "ids, as the model has no tokenizer", escaped(text));
            const auto ids = tokenizer->encode(text, false).ids;
            if (ids.size() != 1)
                refuse_tokens(option, "strings of one token",
                              escaped(text) + ", " + std::to_string(ids.size()) + " tokens");
            tokens.push_back(ids.front());
            at = end;
        }
        if (at == list.size()) break;
        if (list[at++] != ',' || at == list.size()) refuse_tokens(option, "tokens apart by commas", escaped(list));
    }
    return tokens;
}

const tokenizer::Tokenizer* writer_of(const tokenizer::Tokenizer* tokenizer) {
    return tokenizer == nullptr ? nullptr : &tokenizer->of_target();
}

void add_words(store::AskRecord& record, const tokenizer::Tokenizer& tokenizer) {
    const bool answers = !record.sequences.empty() && record.sequences.front().target;
    const tokenizer::Tokenizer& writer = answers ? tokenizer.of_target() : tokenizer;
    for (const std::int64_t id : store::ids_in_tables(record))
        if (id < writer.vocabulary_size() && !record.words.contains(id))
            record.words[id] = writer.surface(static_cast<std::int32_t>(id));
}

}  // namespace headscope::ask
