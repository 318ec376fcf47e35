// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Settings next to a vocabulary: tokenizer_config.json, special_tokens_map.json, added_tokens.json and, for the kind of
// tokenizer, config.json. Read as transformers 5.23 reads them; each may be absent.

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json/json.h"

namespace headscope::tokenizer {

/// An added token as these files describe it.
struct TokenEntry {
    std::string content;
    bool single_word = false;
    bool strip_left = false;
    bool strip_right = false;
    std::optional<bool> normalized = std::nullopt;  ///< default: special tokens match the raw text
    bool special = true;
};

class Settings {
public:
    explicit Settings(const std::filesystem::path& folder);
    /// tokenizer_config.json alone.
    Settings(nlohmann::json tokenizer_config, std::string where);

    /// "GPT2Tokenizer" and so on; empty if no file says it.
    std::string tokenizer_class() const;
    /// "gpt2" and so on, of config.json; empty if there is none.
    std::string model_type() const;
    bool flag(std::string_view name, bool fallback) const { return view().boolean_or(name, fallback); }
    bool has(std::string_view name) const { return view().has(name); }
    std::string text(std::string_view name, const std::string& fallback) const {
        return view().string_or(name, fallback);
    }
    std::int64_t number(std::string_view name, std::int64_t fallback, std::int64_t lowest, std::int64_t highest) const {
        return view().integer_or(name, fallback, {lowest, highest});
    }
    /// True or false, if a file says either.
    std::optional<bool> choice(std::string_view name) const;

    /// Special tokens by name, "bos_token" and so on.
    using Named = std::map<std::string, TokenEntry, std::less<>>;
    /// The files' tokens over `defaults`; null removes one.
    Named named(Named defaults) const;
    /// True if a file names this token by its content alone; the tokenizer's class then says the rest.
    bool is_plain(std::string_view name) const;
    /// All tokens in the order in which they are added: those with numbers, those of `named`, further ones.
    std::vector<TokenEntry> tokens(const Named& named) const;
    /// The further special tokens alone, which have no names.
    std::vector<TokenEntry> further() const;

private:
    void take_lists();
    JsonView view() const { return JsonView(config_, file_); }
    std::vector<TokenEntry> token_list(std::string_view key) const;
    void read_special_tokens_map(const std::filesystem::path& path);
    void read_added_tokens(const std::filesystem::path& path);

    std::string file_;
    nlohmann::json config_ = nlohmann::json::object();
    nlohmann::json model_ = nlohmann::json::object();
    std::string model_file_;
    std::map<std::int64_t, TokenEntry> numbered_;  ///< by the number that the files give them
};

/// Names of special tokens that every tokenizer may have, in the order in which they are added.
const std::vector<std::string>& token_names();

}  // namespace headscope::tokenizer
