// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/files/settings_keys.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/tokenizer/document.h"
#include "core/tokenizer/files/token_types.h"
#include "core/tokenizer/kind.h"

namespace headscope::tokenizer {
namespace {

constexpr std::array kKeys = {
    SettingsKey{"_from_pipeline", KeyUse::harmless, "how transformers was called"},
    SettingsKey{"add_bos_token", KeyUse::obeyed, "without tokenizer.json; beside it transformers drops it"},
    SettingsKey{"add_eos_token", KeyUse::obeyed, "without tokenizer.json; beside it transformers drops it"},
    SettingsKey{"add_prefix_space", KeyUse::obeyed, "apply_settings(); without tokenizer.json the pre-tokenizer"},
    SettingsKey{"added_tokens_decoder", KeyUse::obeyed, "without tokenizer.json, which holds them"},
    SettingsKey{"additional_special_tokens", KeyUse::obeyed, "without tokenizer.json, which holds them"},
    SettingsKey{"auto_map", KeyUse::obeyed, "code of its own is not run, and its class is not overruled"},
    SettingsKey{"backend", KeyUse::harmless, "how transformers was called"},
    SettingsKey{"bos_token", KeyUse::obeyed, "special tokens, text ends, frames of texts"},
    SettingsKey{"chat_control_tokens", KeyUse::harmless, "for programs that read answers or images"},
    SettingsKey{"chat_template", KeyUse::obeyed, "--chat"},
    SettingsKey{"clean_up_tokenization_spaces", KeyUse::obeyed, "text of answers and translations"},
    SettingsKey{"clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", KeyUse::obeyed,
                "text of answers and translations"},
    SettingsKey{"cls_token", KeyUse::obeyed, "special tokens, text ends, frames of texts"},
    SettingsKey{"do_lower_case", KeyUse::obeyed, "apply_settings(); without tokenizer.json the normalizer"},
    SettingsKey{"eos_token", KeyUse::obeyed, "special tokens, text ends, frames of texts"},
    SettingsKey{"eot_token", KeyUse::obeyed, "without tokenizer.json, as any *_token; which holds them"},
    SettingsKey{"errors", KeyUse::harmless, "bytes that are no UTF-8 become U+FFFD, its default"},
    SettingsKey{"extra_ids", KeyUse::obeyed, "sentencepiece folders"},
    SettingsKey{"extra_special_tokens", KeyUse::obeyed, "without tokenizer.json, which holds them"},
    SettingsKey{"files_loaded", KeyUse::harmless, "how transformers was called"},
    SettingsKey{"fill_token", KeyUse::obeyed, "without tokenizer.json, as any *_token; which holds them"},
    SettingsKey{"fix_mistral_regex", KeyUse::obeyed, "apply_settings(): a repair of old files"},
    SettingsKey{"grounded_generation_template", KeyUse::harmless, "chats with tools, or of before chat_template"},
    SettingsKey{"init_inputs", KeyUse::harmless, "how transformers was called"},
    SettingsKey{"keep_accents", KeyUse::refused, "apply_settings(): tokenizer.json's normalizer holds it"},
    SettingsKey{"language_codes", KeyUse::obeyed, "sentencepiece folders"},
    SettingsKey{"legacy", KeyUse::obeyed, "apply_settings()"},
    SettingsKey{"legacy_behaviour", KeyUse::obeyed, "apply_settings()"},
    SettingsKey{"mask_token", KeyUse::obeyed, "special tokens, text ends, frames of texts"},
    SettingsKey{"mask_token_sent", KeyUse::obeyed, "sentencepiece folders"},
    SettingsKey{"max_len", KeyUse::obeyed, "older name of model_max_length"},
    SettingsKey{"max_length", KeyUse::harmless, "each call gives its own"},
    SettingsKey{"middle_token", KeyUse::obeyed, "without tokenizer.json, as any *_token; which holds them"},
    SettingsKey{"model_input_names", KeyUse::obeyed, "token types"},
    SettingsKey{"model_max_length", KeyUse::obeyed, "length of lm-eval's tasks"},
    SettingsKey{"model_specific_special_tokens", KeyUse::obeyed,
                "without tokenizer.json, as any *_token; which holds them"},
    SettingsKey{"num_madeup_words", KeyUse::harmless, "size of a vocabulary; the files hold the tokens"},
    SettingsKey{"offset", KeyUse::obeyed, "sentencepiece folders"},
    SettingsKey{"pad_to_multiple_of", KeyUse::harmless, "padding is masked, at the end"},
    SettingsKey{"pad_token", KeyUse::obeyed, "special tokens, text ends, frames of texts"},
    SettingsKey{"pad_token_type_id", KeyUse::harmless, "padding is masked, at the end"},
    SettingsKey{"padding_side", KeyUse::harmless, "padding is masked, at the end"},
    SettingsKey{"prefix_token", KeyUse::obeyed, "without tokenizer.json, as any *_token; which holds them"},
    SettingsKey{"processor_class", KeyUse::harmless, "for programs that read answers or images"},
    SettingsKey{"response_schema", KeyUse::harmless, "for programs that read answers or images"},
    SettingsKey{"response_template", KeyUse::harmless, "for programs that read answers or images"},
    SettingsKey{"sep_token", KeyUse::obeyed, "special tokens, text ends, frames of texts"},
    SettingsKey{"separate_vocabs", KeyUse::obeyed, "sentencepiece folders"},
    SettingsKey{"source_lang", KeyUse::harmless, "names of languages, for people"},
    SettingsKey{"source_spm", KeyUse::harmless, "files are those of the folder, whatever it names"},
    SettingsKey{"sp_model_kwargs", KeyUse::harmless, "sampling of sentencepiece, which is never asked for"},
    SettingsKey{"special_tokens_pattern", KeyUse::harmless, "of tokenizers in Python, whose models have no types"},
    SettingsKey{"split_special_tokens", KeyUse::refused, "special tokens in a text would be split"},
    SettingsKey{"spm_file", KeyUse::harmless, "files are those of the folder, whatever it names"},
    SettingsKey{"src_lang", KeyUse::obeyed, "apply_settings(); sentencepiece folders"},
    SettingsKey{"stride", KeyUse::harmless, "each call gives its own"},
    SettingsKey{"strip_accents", KeyUse::obeyed, "apply_settings(); without tokenizer.json the normalizer"},
    SettingsKey{"suffix_token", KeyUse::obeyed, "without tokenizer.json, as any *_token; which holds them"},
    SettingsKey{"target_lang", KeyUse::harmless, "names of languages, for people"},
    SettingsKey{"target_spm", KeyUse::harmless, "files are those of the folder, whatever it names"},
    SettingsKey{"target_vocab_file", KeyUse::harmless, "files are those of the folder, whatever it names"},
    SettingsKey{"tgt_lang", KeyUse::obeyed, "sentencepiece folders"},
    SettingsKey{"token_type_ids_include_special_tokens", KeyUse::harmless,
                "of tokenizers in Python, whose models have no types"},
    SettingsKey{"token_type_ids_pattern", KeyUse::harmless, "of tokenizers in Python, whose models have no types"},
    SettingsKey{"tokenize_chinese_chars", KeyUse::obeyed, "apply_settings(); without tokenizer.json the normalizer"},
    SettingsKey{"tokenizer_class", KeyUse::obeyed, "token types, text ends, the kind of older files"},
    SettingsKey{"tool_use_template", KeyUse::harmless, "chats with tools, or of before chat_template"},
    SettingsKey{"trim_offsets", KeyUse::obeyed, "without tokenizer.json; it changes offsets alone"},
    SettingsKey{"truncation_side", KeyUse::obeyed, "texts of classify and translation that are cut"},
    SettingsKey{"truncation_strategy", KeyUse::harmless, "each call gives its own"},
    SettingsKey{"unk_id", KeyUse::harmless, "tokenizer.json's model holds it"},
    SettingsKey{"unk_token", KeyUse::obeyed, "special tokens, text ends, frames of texts"},
    SettingsKey{"use_default_system_prompt", KeyUse::harmless, "chats with tools, or of before chat_template"},
    SettingsKey{"verbose", KeyUse::harmless, "how transformers was called"},
};

/// Classes that make their normalizer of do_lower_case and its neighbors: BertTokenizer, under all of its names.
constexpr std::string_view kBertClasses[] = {"BertTokenizer",       "DistilBertTokenizer", "ElectraTokenizer",
                                             "LayoutLMTokenizer",   "LxmertTokenizer",     "MPNetTokenizer",
                                             "MobileBertTokenizer", "SqueezeBertTokenizer"};
/// Classes that make their pre-tokenizer of add_prefix_space.
constexpr std::string_view kByteLevelClasses[] = {"BartTokenizer",   "BlenderbotTokenizer", "CohereTokenizer",
                                                  "GPT2Tokenizer",   "GPTNeoXTokenizer",    "Qwen2Tokenizer",
                                                  "RobertaTokenizer"};

/// Classes that frame texts by their end and a language, src_lang or the usual one, which stands before them or last.
struct LanguageFrame {
    std::string_view name;
    const char* usual;
    bool before;
};
constexpr LanguageFrame kLanguageFrames[] = {
    {"NllbTokenizer", "eng_Latn", true}, {"MBart50Tokenizer", "en_XX", true}, {"MBartTokenizer", "en_XX", false}};
/// Model types whose files of before transformers 5 may ask for a repair of how they cut texts, and that repair.
constexpr std::string_view kRepairedModels[] = {"mistral", "mistral3", "voxtral", "ministral", "pixtral"};
constexpr const char* kRepairedSplit =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

template <class List>
bool has_name(const List& list, std::string_view name) {
    return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

/// Calls `change` for each component of this type in `component`, which may be a sequence.
template <class Change>
void each_of_type(nlohmann::json& component, const char* type, const Change& change) {
    if (!component.is_object()) return;
    if (component.value("type", nlohmann::json()) == type) change(component);
    for (const char* list : {"normalizers", "pretokenizers"})
        if (component.contains(list) && component[list].is_array())
            for (nlohmann::json& member : component[list]) each_of_type(member, type, change);
}

/// Key of tokenizer_config.json and field of the component.
struct Decides {
    const char *key, *field;
};

void decide(const JsonView& settings, nlohmann::json& document, const char* kind, const char* type,
            std::initializer_list<Decides> all) {
    if (!document.contains(kind)) return;
    each_of_type(document[kind], type, [&](nlohmann::json& component) {
        for (const auto& [key, field] : all)
            if (settings.has(key)) component[field] = settings.at(key).boolean();
    });
}

bool has_byte_level(const nlohmann::json& document) {
    const JsonView parts(document, "tokenizer.json");
    for (const std::string_view kind : {"normalizer", "pre_tokenizer", "post_processor", "decoder"})
        if (find_type(parts.find(kind), "ByteLevel")) return true;
    return false;
}

/// LlamaTokenizer takes pieces, merges and frames of texts from tokenizer.json, and builds the other parts of two keys;
/// CodeLlamaTokenizer, of `code`, of add_prefix_space alone. Byte-level files that name these classes stay as they are.
void build_llama(const JsonView& settings, bool code, nlohmann::json& document) {
    const auto model = document.find("model");
    if (model == document.end() || !model->is_object() || !model->contains("merges") || has_byte_level(document))
        return;
    const bool prefix = settings.boolean_or("add_prefix_space", true);
    const bool legacy = !code && settings.boolean_or("legacy", false);
    constexpr const char* kSpace = "\u2581";
    model->update({{"fuse_unk", true}, {"byte_fallback", true}, {"ignore_merges", false}});
    if (!code) (*model)["unk_token"] = nullptr;
    document["normalizer"] = nullptr;
    document["pre_tokenizer"] = {{"type", "Metaspace"},
                                 {"replacement", kSpace},
                                 {"prepend_scheme", !prefix ? "never" : (legacy ? "always" : "first")},
                                 {"split", false}};
    auto decoders = nlohmann::json::array({{{"type", "Replace"}, {"pattern", {{"String", kSpace}}}, {"content", " "}},
                                           {{"type", "ByteFallback"}},
                                           {{"type", "Fuse"}}});
    if (prefix || code) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    document["decoder"] = {{"type", "Sequence"}, {"decoders", decoders}};
}

/// Id of an added token of tokenizer.json; empty: it has none of that name.
std::optional<std::int64_t> added_id(const nlohmann::json& document, const std::string& content) {
    const auto added = JsonView(document, "tokenizer.json").find("added_tokens");
    if (!added || !added->is_array()) return std::nullopt;
    for (const JsonView& token : added->items())
        if (token.is_object() && token.string_or("content", "") == content) return token.at("id").integer();
    return std::nullopt;
}

/// Frames texts as the class does, whatever frame tokenizer.json has.
void frame_texts(const JsonView& settings, const LanguageFrame& frame, nlohmann::json& document) {
    const auto named_end = settings.find("eos_token");
    const std::string end = !named_end               ? std::string("</s>")
                            : named_end->is_object() ? named_end->string_or("content", "</s>")
                                                     : named_end->string();
    const std::string language = settings.string_or("src_lang", frame.usual);
    const auto end_id = added_id(document, end), language_id = added_id(document, language);
    if (!language_id && settings.has("src_lang"))
        settings.at("src_lang").refuse(ErrorCode::mismatch, "expected an added token of tokenizer.json");
    if (!end_id || !language_id) return;
    const bool old = frame.name == "NllbTokenizer" && settings.boolean_or("legacy_behaviour", false);
    const bool before = frame.before && !old;
    const auto frame_of = [&](std::initializer_list<const char*> texts) {
        nlohmann::json parts = nlohmann::json::array();
        const auto put = [&parts](const std::string& token) {
            parts.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
        };
        if (before) put(language);
        for (const char* text : texts) parts.push_back({{"Sequence", {{"id", text}, {"type_id", 0}}}});
        put(end);
        if (!before) put(language);
        return parts;
    };
    nlohmann::json special = nlohmann::json::object();
    for (const auto& [token, id] : {std::pair(end, *end_id), std::pair(language, *language_id)})
        special[token] = {
            {"id", token}, {"ids", nlohmann::json::array({id})}, {"tokens", nlohmann::json::array({token})}};
    document["post_processor"] = {{"type", "TemplateProcessing"},
                                  {"single", frame_of({"A"})},
                                  {"pair", frame_of({"A", "B"})},
                                  {"special_tokens", special}};
}

/// AlbertTokenizer builds its normalizer of two keys: tokenizer.json's has to be the same.
void expect_albert(const JsonView& settings, const nlohmann::json& document) {
    const auto normalizer = JsonView(document, "tokenizer.json").find("normalizer");
    const auto expect = [&](const char* key, const char* type, bool has_type) {
        const auto value = settings.find(key);
        if (!value || (value->boolean() == has_type) == find_type(normalizer, type).has_value()) return;
        value->refuse(ErrorCode::unsupported,
                      std::string("expected ") + (value->boolean() ? "false" : "true") + ", as tokenizer.json has it");
    };
    expect("keep_accents", "StripAccents", false);
    expect("do_lower_case", "Lowercase", true);
}

/// True if a config.json asks for the repair where tokenizer_config.json does.
bool may_be_repaired(const JsonView& config) {
    if (!config.is_object() || config.size() == 0) return false;
    const auto type = config.find("model_type"), version = config.find("transformers_version");
    if (type && !(type->is_string() && has_name(kRepairedModels, type->string()))) return false;
    const std::string written = version && version->is_string() ? version->string() : "";
    const bool before_final = written.starts_with("5.0.0") && written.size() > 5;  // 5.0.0rc1
    return before_final || std::strtoul(written.c_str(), nullptr, 10) < 5;
}

/// Replaces the first cut of a text, where the vocabulary is as large as those of the files that have it wrong.
void repair_splits(nlohmann::json& document) {
    constexpr std::size_t kSmallest = 100'000;
    const auto model = JsonView(document, "tokenizer.json").find("model");
    const auto vocabulary = model && model->is_object() ? model->find("vocab") : std::nullopt;
    if (!vocabulary || packed_size(*vocabulary) <= kSmallest || !document.contains("pre_tokenizer")) return;
    nlohmann::json& parts = document["pre_tokenizer"];
    if (!parts.is_object()) return;
    const nlohmann::json split = {
        {"type", "Split"}, {"pattern", {{"Regex", kRepairedSplit}}}, {"behavior", "Isolated"}, {"invert", false}};
    if (parts.contains("pretokenizers") && parts["pretokenizers"].is_array() && !parts["pretokenizers"].empty()) {
        parts["pretokenizers"][0] = split;
        return;
    }
    nlohmann::json second = parts;
    if (parts.value("type", nlohmann::json()) == "Metaspace")
        second = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
    parts = {{"type", "Sequence"}, {"pretokenizers", nlohmann::json::array({split, second})}};
}

}  // namespace

std::span<const SettingsKey> settings_keys() {
    return kKeys;
}

void apply_settings(const JsonView& tokenizer_config, const JsonView& config, nlohmann::json& document) {
    if (!tokenizer_config.is_object() || !document.is_object()) return;
    if (tokenizer_config.boolean_or("split_special_tokens", false))
        tokenizer_config.at("split_special_tokens").refuse(ErrorCode::unsupported, "expected false");
    const std::string name = chosen_tokenizer_class(tokenizer_config, config);
    if (has_name(kBertClasses, name))
        decide(tokenizer_config, document, "normalizer", "BertNormalizer",
               {{"do_lower_case", "lowercase"},
                {"strip_accents", "strip_accents"},
                {"tokenize_chinese_chars", "handle_chinese_chars"}});
    if (has_name(kByteLevelClasses, name))
        decide(tokenizer_config, document, "pre_tokenizer", "ByteLevel", {{"add_prefix_space", "add_prefix_space"}});
    const bool code = name == "CodeLlamaTokenizer";
    if (code || name == "LlamaTokenizer") build_llama(tokenizer_config, code, document);
    if (name == "AlbertTokenizer") expect_albert(tokenizer_config, document);
    for (const LanguageFrame& frame : kLanguageFrames)
        if (name == frame.name) frame_texts(tokenizer_config, frame, document);
    if (tokenizer_config.boolean_or("fix_mistral_regex", false) && may_be_repaired(config)) repair_splits(document);
}

}  // namespace headscope::tokenizer
