// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/files/settings.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/io/input_file.h"

namespace headscope::tokenizer {

namespace {

constexpr std::uint64_t largest_file = 4'000'000;

// A string, or an object with the fields of an added token.
bool is_token(const nlohmann::json& value) {
    return value.is_string() || (value.is_object() && value.contains("content"));
}

TokenEntry read_token(const JsonView& value) {
    TokenEntry token;
    if (value.is_string()) {
        token.content = value.string();
        return token;
    }
    token.content = value.at("content").string();
    token.single_word = value.boolean_or("single_word", false);
    token.strip_left = value.boolean_or("lstrip", false);
    token.strip_right = value.boolean_or("rstrip", false);
    token.special = value.boolean_or("special", false);
    if (value.has("normalized")) token.normalized = value.at("normalized").boolean();
    return token;
}

nlohmann::json read_object(const std::filesystem::path& path, const std::string& kind) {
    nlohmann::json document = read_json_file(path, largest_file, kind);
    JsonView(document, escaped(path.string())).object();
    return document;
}

std::int64_t number_of(const std::string& key, const JsonView& token) {
    std::int64_t number = 0;
    const char* const end = key.data() + key.size();
    const auto [rest, problem] = std::from_chars(key.data(), end, number);
    if (problem != std::errc() || rest != end || number < 0) {
        token.refuse(ErrorCode::format, "expected the number of a token as the key");
    }
    return number;
}

}  // namespace

const std::vector<std::string>& token_names() {
    static const std::vector<std::string> names = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                   "pad_token", "cls_token", "mask_token"};
    return names;
}

Settings::Settings(const std::filesystem::path& folder) : file_(escaped((folder / "tokenizer_config.json").string())) {
    const auto file = [&](const char* name) {
        const std::filesystem::path path = folder / name;
        return ends_at_regular_file(path) ? std::optional(path) : std::nullopt;
    };
    if (const auto path = file("tokenizer_config.json")) config_ = read_object(*path, "tokenizer configuration");
    if (const auto path = file("config.json")) {
        model_ = read_python_json_file(*path, largest_file, "configuration");  // which may have an infinity
        model_file_ = escaped(path->string());
        JsonView(model_, model_file_).object();
    }
    take_lists();
    if (view().has("added_tokens_decoder")) return;
    // The files of older versions count only without that list.
    if (const auto path = file("special_tokens_map.json")) read_special_tokens_map(*path);
    if (const auto path = file("added_tokens.json")) read_added_tokens(*path);
}

Settings::Settings(nlohmann::json tokenizer_config, std::string where)
    : file_(std::move(where)), config_(std::move(tokenizer_config)) {
    view().object();
    take_lists();
}

void Settings::take_lists() {
    // The old name of the list, if the new one says nothing.
    const auto extra = view().find("extra_special_tokens");
    if (view().has("additional_special_tokens") && (!extra || extra->size() == 0)) {
        config_["extra_special_tokens"] = config_["additional_special_tokens"];
        config_.erase("additional_special_tokens");
    }
    if (const auto numbered = view().find("added_tokens_decoder")) {
        for (const std::string& key : numbered->object().keys()) {
            const JsonView token = numbered->at(key);
            numbered_[number_of(key, token)] = read_token(token.object());
        }
    }
}

void Settings::read_special_tokens_map(const std::filesystem::path& path) {
    nlohmann::json map = read_object(path, "map of special tokens");
    const JsonView view(map, escaped(path.string()));
    for (const std::string& key : view.keys()) {
        nlohmann::json& value = map[key];
        if (value.is_object() && key != "extra_special_tokens") {
            value["special"] = true;
            read_token(view.at(key));  // errors name this file
        }
        config_[key] = value;
    }
}

void Settings::read_added_tokens(const std::filesystem::path& path) {
    const nlohmann::json list = read_object(path, "list of added tokens");
    const JsonView view(list, escaped(path.string()));
    std::unordered_set<std::string> special;
    for (const auto& [name, token] : named({})) {
        if (std::find(token_names().begin(), token_names().end(), name) != token_names().end()) {
            special.insert(token.content);
        }
    }
    for (const TokenEntry& token : token_list("extra_special_tokens")) special.insert(token.content);
    for (const std::string& content : view.keys()) {
        TokenEntry token;
        token.content = content;
        token.special = special.contains(content);
        numbered_[view.at(content).integer({0, std::numeric_limits<std::int32_t>::max() - 1})] = token;
    }
}

std::string Settings::tokenizer_class() const {
    std::string name = view().string_or("tokenizer_class", "");
    if (name.empty()) name = JsonView(model_, model_file_).string_or("tokenizer_class", "");
    if (name.ends_with("Fast")) name.resize(name.size() - 4);
    return name;
}

std::string Settings::model_type() const {
    return JsonView(model_, model_file_).string_or("model_type", "");
}

std::optional<bool> Settings::choice(std::string_view name) const {
    const auto value = view().find(name);
    return value ? std::optional(value->boolean()) : std::nullopt;
}

std::vector<TokenEntry> Settings::further() const {
    return token_list(config_.contains("extra_special_tokens") ? "extra_special_tokens" : "additional_special_tokens");
}

std::vector<TokenEntry> Settings::token_list(std::string_view key) const {
    std::vector<TokenEntry> tokens;
    const auto found = view().find(key);
    if (!found || found->is_object()) return tokens;  // an object names tokens of the model's own
    for (std::size_t i = 0; i < found->array().size(); ++i) tokens.push_back(read_token(found->at(i)));
    return tokens;
}

Settings::Named Settings::named(Named defaults) const {
    std::unordered_map<std::string, const TokenEntry*> numbered;
    for (const auto& [number, token] : numbered_) numbered[token.content] = &token;
    const auto take = [&](const std::string& name, const JsonView& of) {
        if (!of.has(name)) {
            defaults.erase(name);
            return;
        }
        const TokenEntry token = read_token(of.at(name));
        const auto known = numbered.find(token.content);
        defaults[name] = known == numbered.end() ? token : *known->second;
        defaults[name].special = true;
    };
    for (const std::string& name : token_names()) {
        if (config_.contains(name)) take(name, view());
    }
    for (const auto& [key, value] : config_.items()) {
        const bool own = std::find(token_names().begin(), token_names().end(), key) == token_names().end();
        if (own && key.ends_with("_token") && is_token(value)) take(key, view());
    }
    const auto extra = view().find("extra_special_tokens");
    if (extra && extra->is_object()) {
        for (const std::string& name : extra->keys()) take(name, *extra);
    }
    return defaults;
}

bool Settings::is_plain(std::string_view name) const {
    const auto value = view().find(name);
    return value && value->is_string() && std::none_of(numbered_.begin(), numbered_.end(), [&](const auto& entry) {
               return entry.second.content == value->string();
           });
}

std::vector<TokenEntry> Settings::tokens(const Named& named) const {
    std::unordered_set<std::string> special;
    for (const auto& [name, token] : named) special.insert(token.content);
    std::vector<TokenEntry> all;
    std::unordered_set<std::string> known;
    for (const auto& [number, token] : numbered_) {
        all.push_back(token);
        all.back().special = token.special || special.contains(token.content);
        known.insert(token.content);
    }
    const auto add = [&](const TokenEntry& token) {
        if (known.insert(token.content).second) all.push_back(token);
    };
    for (const std::string& name : token_names()) {
        if (const auto token = named.find(name); token != named.end()) add(token->second);
    }
    for (const auto& [name, token] : named) {
        if (config_.contains(name)) add(token);
    }
    for (const auto& [name, token] : named) add(token);
    for (const TokenEntry& token : further()) add(token);
    return all;
}

}  // namespace headscope::tokenizer
