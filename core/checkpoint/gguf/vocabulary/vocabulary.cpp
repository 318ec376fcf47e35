// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/gguf/vocabulary/vocabulary.h"

#include <cmath>
#include <utility>

#include "core/base/text/text.h"

namespace headscope::checkpoint::gguf {
namespace {

constexpr const char* kTokensKey = "tokenizer.ggml.tokens";
constexpr const char* kTypesKey = "tokenizer.ggml.token_type";
constexpr const char* kScoresKey = "tokenizer.ggml.scores";

nlohmann::json special(const Vocabulary& vocabulary, std::size_t id, int type) {
    return {{"SpecialToken", {{"id", vocabulary.token(id)}, {"type_id", type}}}};
}

nlohmann::json sequence(const char* which, int type) {
    return {{"Sequence", {{"id", which}, {"type_id", type}}}};
}

}  // namespace

Vocabulary::Vocabulary(KeyReader& keys) : keys_(keys) {
    const std::vector<std::string>* tokens = keys.texts(kTokensKey);
    if (tokens == nullptr || tokens->empty()) keys.refuse(ErrorCode::format, kTokensKey, "expected a list of tokens");
    tokens_ = *tokens;
    ids_.reserve(tokens_.size());
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
        std::string& token = tokens_[id];
        if (token.empty()) token = "[EMPTY_" + std::to_string(id) + "]";
        if (const std::size_t bad = find_invalid_utf8(token); bad != std::string::npos) {
            throw Error(ErrorCode::format, keys.where(kTokensKey), "expected UTF-8",
                        "found \"" + escaped(token, 60) + "\", token " + std::to_string(id));
        }
        if (!ids_.try_emplace(token, id).second) {
            throw Error(ErrorCode::format, keys.where(kTokensKey), "expected each token once",
                        "found \"" + escaped(token, 60) + "\" again, as " + std::to_string(id));
        }
    }
    const auto list = [&](const char* key) -> const Array* {
        const Array* array = keys.array(key);
        if (array == nullptr) return nullptr;
        if (!array->is_numbers() || array->count != tokens_.size())
            keys.refuse(ErrorCode::format, key,
                        "expected a number for each of " + count_text(tokens_.size()) + " tokens");
        return array;
    };
    if (const Array* types = list(kTypesKey)) {
        if (!types->is_integers()) keys.refuse(ErrorCode::format, kTypesKey, "expected whole numbers");
        for (std::uint64_t i = 0; i < types->count; ++i) {
            const std::int64_t type = types->integer(i);
            if (type < 0 || type > static_cast<std::int64_t>(TokenType::byte)) {
                throw Error(ErrorCode::unsupported, keys.where(kTypesKey), "expected types from 0 to 6",
                            "found " + std::to_string(type));
            }
            types_.push_back(static_cast<TokenType>(type));
        }
    }
    if (const Array* scores = list(kScoresKey)) {
        for (std::uint64_t i = 0; i < scores->count; ++i) {
            scores_.push_back(scores->number(i));
            if (!std::isfinite(scores_.back())) {
                throw Error(ErrorCode::format, keys.where(kScoresKey), "expected finite scores",
                            "found another, of token " + std::to_string(i));
            }
        }
    }
}

std::optional<std::size_t> Vocabulary::id_of(const std::string& token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

void Vocabulary::respell(std::size_t id, std::string token) {
    if (token == tokens_[id]) return;
    if (!ids_.try_emplace(token, id).second) {
        throw Error(ErrorCode::format, keys_.where(kTokensKey), "expected each token once",
                    "found \"" + escaped(token, 60) + "\" again, as " + std::to_string(id));
    }
    ids_.erase(tokens_[id]);
    tokens_[id] = std::move(token);
}

std::optional<std::size_t> Vocabulary::named(const std::string& key) const {
    const std::string whole = "tokenizer.ggml." + key;
    if (!keys_.has(whole)) return std::nullopt;
    constexpr std::int64_t kNone = 4294967295;  // -1 as a file of unsigned numbers has it
    const std::int64_t id = keys_.integer(whole, -1, kNone);
    if (id == -1 || id == kNone) return std::nullopt;
    if (static_cast<std::uint64_t>(id) >= tokens_.size())
        keys_.refuse(ErrorCode::mismatch, whole, "expected an id below " + std::to_string(tokens_.size()));
    return static_cast<std::size_t>(id);
}

nlohmann::json Vocabulary::ids() const {
    nlohmann::json::object_t ids;
    for (std::size_t id = 0; id < tokens_.size(); ++id) ids.emplace(tokens_[id], id);
    return ids;
}

nlohmann::json Vocabulary::added_tokens() const {
    nlohmann::json added = nlohmann::json::array();
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
        const bool control = type(id) == TokenType::control || type(id) == TokenType::unknown;
        if (!control && type(id) != TokenType::user_defined) continue;
        added.push_back({{"id", id},
                         {"content", tokens_[id]},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false},
                         {"normalized", false},
                         {"special", control}});
    }
    return added;
}

nlohmann::json template_of(const Vocabulary& vocabulary, const Ends& ends) {
    if (!ends.first && !ends.last && !ends.separator) return nullptr;
    nlohmann::json single = nlohmann::json::array(), pair = nlohmann::json::array(), special_tokens;
    const auto put = [&](nlohmann::json& list, const std::optional<std::size_t>& id, int type) {
        if (!id) return;
        list.push_back(special(vocabulary, *id, type));
        const std::string& token = vocabulary.token(*id);
        special_tokens[token] = {{"id", token}, {"ids", {*id}}, {"tokens", {token}}};
    };
    put(single, ends.first, 0);
    single.push_back(sequence("A", 0));
    put(single, ends.last, 0);
    put(pair, ends.first, 0);
    pair.push_back(sequence("A", 0));
    put(pair, ends.separator ? ends.separator : ends.last, 0);
    if (!ends.separator) put(pair, ends.first, 1);
    pair.push_back(sequence("B", 1));
    put(pair, ends.separator ? ends.separator : ends.last, 1);
    return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", special_tokens}};
}

Ends read_ends(const Vocabulary& vocabulary, bool first_by_default, bool last_by_default) {
    KeyReader& keys = vocabulary.keys();
    const auto read = [&](const std::string& flag, const std::string& key, bool otherwise) {
        const std::string whole = "tokenizer.ggml." + flag;
        const std::optional<std::size_t> token = vocabulary.named(key);
        if (!keys.boolean_or(whole, otherwise)) return std::optional<std::size_t>();
        if (!token && keys.has(whole))
            keys.refuse(ErrorCode::mismatch, whole, "expected false, for the file names no " + key);
        return token;
    };
    return {read("add_bos_token", "bos_token_id", first_by_default),
            read("add_eos_token", "eos_token_id", last_by_default), std::nullopt};
}

}  // namespace headscope::checkpoint::gguf
