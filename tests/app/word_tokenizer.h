// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A tokenizer for golden_sample(), whose checkpoints have none: words are tokens, and no token is added to a text.

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "files.h"

namespace headscope::testing {

/// The word of an id from 3 on: "d3".
inline std::string word_of(int id) {
    return std::string(1, static_cast<char>('a' + id % 26)) + std::to_string(id);
}

/// A text with these tokens.
inline std::string words_of(const std::vector<int>& ids) {
    std::string text;
    for (const int id : ids) text += (text.empty() ? "" : " ") + word_of(id);
    return text;
}

/// Ids 0 to 2 are <pad>, </s> and <unk>.
inline void write_word_tokenizer(const std::filesystem::path& model) {
    using nlohmann::json;
    const int vocabulary = json::parse(read_file(model / "config.json")).at("vocab_size").get<int>();
    json words = json::object({{"<pad>", 0}, {"</s>", 1}, {"<unk>", 2}});
    for (int id = 3; id < vocabulary; ++id) words[word_of(id)] = id;
    write_file(model / "tokenizer.json",
               json({{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", json::array()},
                     {"normalizer", nullptr},
                     {"pre_tokenizer", {{"type", "Whitespace"}}},
                     {"post_processor", nullptr},
                     {"decoder", nullptr},
                     {"model", {{"type", "WordLevel"}, {"vocab", words}, {"unk_token", "<unk>"}}}})
                   .dump());
    write_file(model / "tokenizer_config.json", R"({"eos_token": "</s>"})");
}

}  // namespace headscope::testing
