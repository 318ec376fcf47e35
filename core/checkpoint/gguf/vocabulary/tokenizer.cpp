// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <utility>

#include "core/base/json/json.h"
#include "core/checkpoint/gguf/gguf.h"
#include "core/checkpoint/gguf/vocabulary/vocabulary.h"

namespace headscope::checkpoint {
namespace gguf {
namespace {

using nlohmann::json;

constexpr const char* kModelKey = "tokenizer.ggml.model";
constexpr const char* kWholeKey = "tokenizer.huggingface.json";
constexpr const char* kTemplateKey = "tokenizer.chat_template";

/// Keys that change no id: tokens of turns and of text with a gap, counts.
constexpr std::array kHarmless = {"eot_token_id",     "eom_token_id",     "mask_token_id",    "cls_token_id",
                                  "fim_pre_token_id", "fim_suf_token_id", "fim_mid_token_id", "fim_pad_token_id",
                                  "fim_rep_token_id", "fim_sep_token_id", "prefix_token_id",  "suffix_token_id",
                                  "middle_token_id",  "token_type_count", "suppress_tokens",  "seperator_token_id"};

json make_document(Vocabulary& vocabulary, const std::string& model) {
    if (model == "gpt2") return byte_level_document(vocabulary);
    if (model == "llama") return sentence_piece_document(vocabulary);
    if (model == "bert") return word_piece_document(vocabulary);
    if (model == "t5") return unigram_document(vocabulary);
    vocabulary.keys().refuse(ErrorCode::unsupported, kModelKey, "expected gpt2, llama, bert or t5");
}

void expect_all_read(KeyReader& keys) {
    const std::string stem = "tokenizer.ggml.";
    for (const char* name : kHarmless) keys.ignore(stem + name);
    // A false one adds nothing.
    for (const char* name : {"add_sep_token", "add_space_prefix", "remove_extra_whitespaces"}) {
        const std::string key = stem + name;
        if (keys.unread(key).empty() || keys.boolean_or(key, false) == false) continue;
        keys.refuse(ErrorCode::unsupported, key, "expected false with this kind of vocabulary");
    }
    const std::vector<std::string> unread = keys.unread(stem);
    if (!unread.empty()) keys.refuse(ErrorCode::unsupported, unread.front(), "expected a key that is read");
}

/// One template, or a list of named ones.
json chat_templates(KeyReader& keys) {
    const std::string plain = keys.text_or(kTemplateKey, "");
    const std::vector<std::string>* names = keys.texts("tokenizer.chat_templates");
    json list = json::array();
    if (names != nullptr) {
        for (const std::string& name : *names) {
            const std::string key = std::string(kTemplateKey) + "." + name;
            if (keys.has(key)) list.push_back({{"name", name}, {"template", keys.text(key)}});
        }
    }
    if (list.empty()) return plain.empty() ? json() : json(plain);
    if (!plain.empty()) list.insert(list.begin(), json({{"name", "default"}, {"template", plain}}));
    return list;
}

json make_settings(KeyReader& keys, const Vocabulary& vocabulary) {
    json settings = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
    const std::array named{std::pair("bos_token", "bos_token_id"),       std::pair("eos_token", "eos_token_id"),
                           std::pair("unk_token", "unknown_token_id"),   std::pair("pad_token", "padding_token_id"),
                           std::pair("sep_token", "seperator_token_id"), std::pair("mask_token", "mask_token_id")};
    for (const auto& [name, key] : named)
        if (const auto id = vocabulary.named(key)) settings[name] = vocabulary.token(*id);
    for (const char* name : {"add_bos_token", "add_eos_token"}) {
        const std::string key = std::string("tokenizer.ggml.") + name;
        if (keys.has(key)) settings[name] = keys.boolean_or(key, false);
    }
    if (json chat = chat_templates(keys); !chat.is_null()) settings["chat_template"] = std::move(chat);
    return settings;
}

}  // namespace
}  // namespace gguf

std::optional<TokenizerDocuments> gguf_tokenizer(const gguf::Metadata& metadata) {
    gguf::KeyReader keys(metadata);
    const bool whole = keys.has(gguf::kWholeKey);
    const std::string model = keys.text_or(gguf::kModelKey, "");
    if (!whole && (model.empty() || model == "none" || model == "no_vocab")) return std::nullopt;
    gguf::Vocabulary vocabulary(keys);
    TokenizerDocuments made;
    if (whole) {
        const std::string text = keys.text(gguf::kWholeKey);
        made.tokenizer = parse_json(text, metadata.where(gguf::kWholeKey));
    } else {
        made.tokenizer = gguf::make_document(vocabulary, model);
    }
    made.settings = gguf::make_settings(keys, vocabulary);
    if (!whole) gguf::expect_all_read(keys);
    return made;
}

}  // namespace headscope::checkpoint
