// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/files/older_files.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/tokenizer/files/settings.h"
#include "core/tokenizer/files/vocabulary_files.h"
#include "core/tokenizer/unicode/text_ends.h"

namespace headscope::tokenizer {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

enum class Style { gpt2, codegen, roberta, blenderbot, deberta, gpt_neox, qwen2, clip, bert, mpnet, esm, unknown };

struct StyleName {
    std::string_view name;
    Style style;
};

// Names of classes, in transformers of any version.
constexpr std::array class_names = {
    StyleName{"GPT2Tokenizer", Style::gpt2},
    StyleName{"CodeGenTokenizer", Style::codegen},
    StyleName{"RobertaTokenizer", Style::roberta},
    StyleName{"BartTokenizer", Style::roberta},
    StyleName{"LongformerTokenizer", Style::roberta},
    StyleName{"LEDTokenizer", Style::roberta},
    StyleName{"BlenderbotTokenizer", Style::blenderbot},
    StyleName{"DebertaTokenizer", Style::deberta},
    StyleName{"GPTNeoXTokenizer", Style::gpt_neox},
    StyleName{"Qwen2Tokenizer", Style::qwen2},
    StyleName{"BertTokenizer", Style::bert},
    StyleName{"DistilBertTokenizer", Style::bert},
    StyleName{"ElectraTokenizer", Style::bert},
    StyleName{"MobileBertTokenizer", Style::bert},
    StyleName{"SqueezeBertTokenizer", Style::bert},
    StyleName{"ConvBertTokenizer", Style::bert},
    StyleName{"MPNetTokenizer", Style::mpnet},
    StyleName{"CLIPTokenizer", Style::clip},
    StyleName{"EsmTokenizer", Style::esm},
};

constexpr std::array model_types = {
    StyleName{"gpt2", Style::gpt2},
    StyleName{"gptj", Style::gpt2},
    StyleName{"gpt_neo", Style::gpt2},
    StyleName{"codegen", Style::gpt2},
    StyleName{"opt", Style::gpt2},
    StyleName{"phi", Style::gpt2},
    StyleName{"starcoder2", Style::gpt2},
    StyleName{"roberta", Style::roberta},
    StyleName{"bart", Style::roberta},
    StyleName{"longformer", Style::roberta},
    StyleName{"led", Style::roberta},
    StyleName{"roberta-prelayernorm", Style::roberta},
    StyleName{"deberta", Style::deberta},
    StyleName{"gpt_neox", Style::gpt_neox},
    StyleName{"mamba", Style::gpt_neox},
    StyleName{"mamba2", Style::gpt_neox},
    StyleName{"mpt", Style::gpt_neox},
    StyleName{"olmo", Style::gpt_neox},
    StyleName{"olmoe", Style::gpt_neox},
    StyleName{"rwkv", Style::gpt_neox},
    StyleName{"qwen2", Style::qwen2},
    StyleName{"qwen2_moe", Style::qwen2},
    StyleName{"qwen3", Style::qwen2},
    StyleName{"qwen3_moe", Style::qwen2},
    StyleName{"bert", Style::bert},
    StyleName{"distilbert", Style::bert},
    StyleName{"electra", Style::bert},
    StyleName{"mobilebert", Style::bert},
    StyleName{"squeezebert", Style::bert},
    StyleName{"convbert", Style::bert},
    StyleName{"megatron-bert", Style::bert},
    StyleName{"nomic_bert", Style::bert},
    StyleName{"mpnet", Style::mpnet},
    StyleName{"esm", Style::esm},
    StyleName{"clip", Style::clip},
    StyleName{"clip_text_model", Style::clip},
    StyleName{"blenderbot", Style::blenderbot},
};

// Types of models whose files are called the same and mean something else.
constexpr std::array<std::string_view, 16> other_types = {
    "whisper", "blenderbot-small", "ctrl",     "xlm", "flaubert", "fsmt", "biogpt", "speech_to_text",
    "luke",    "prophetnet",       "roformer", "mvp", "markuplm", "clvp", "vits",   "transfo-xl"};

template <std::size_t count>
Style find_style(const std::array<StyleName, count>& names, std::string_view name) {
    const auto found =
        std::find_if(names.begin(), names.end(), [&](const StyleName& entry) { return entry.name == name; });
    return found == names.end() ? Style::unknown : found->style;
}

bool is_word_piece(Style style) {
    return style == Style::bert || style == Style::mpnet;
}

/// Their pieces are the lines of vocab.txt.
bool has_lines(Style style) {
    return is_word_piece(style) || style == Style::esm;
}

bool has_file(const fs::path& folder, const char* name) {
    return ends_at_regular_file(folder / name);
}

bool has_merges(const fs::path& folder) {
    return has_file(folder, "vocab.json") && has_file(folder, "merges.txt");
}

[[noreturn]] void refuse_kind(const fs::path& folder, const std::string& found) {
    throw Error(
        ErrorCode::unsupported, escaped(folder.string()),
        "expected a tokenizer.json, or the files of a tokenizer like GPT-2's, RoBERTa's, CLIP's, BERT's or ESM's",
        "found " + found);
}

/// The class of tokenizer_config.json or config.json; else what the model type has.
Style named_style(const Settings& settings) {
    const std::string name = settings.tokenizer_class();
    const bool unnamed = name.empty() || name == "PreTrainedTokenizer";
    return unnamed ? find_style(model_types, settings.model_type()) : find_style(class_names, name);
}

// That; else the plain kind of the files.
Style style_of(const fs::path& folder, const Settings& settings) {
    const std::string name = settings.tokenizer_class();
    Style style = named_style(settings);
    if (style == Style::unknown && (name.empty() || name == "PreTrainedTokenizer")) {
        const std::string type = settings.model_type();
        if (std::find(other_types.begin(), other_types.end(), type) != other_types.end())
            refuse_kind(folder, "the tokenizer of a " + type + " model");
        style = has_merges(folder) ? Style::gpt2 : Style::bert;
    }
    if (style == Style::unknown) refuse_kind(folder, "a " + escaped(name, 60));
    if (has_lines(style) ? !has_file(folder, "vocab.txt") : !has_merges(folder)) {
        throw Error(ErrorCode::mismatch, escaped(folder.string()),
                    has_lines(style) ? "expected a vocab.txt, as its kind of tokenizer has"
                                     : "expected vocab.json and merges.txt, as its kind of tokenizer has",
                    has_lines(style) ? "found vocab.json and merges.txt" : "found vocab.txt");
    }
    return style;
}

Settings::Named default_tokens(Style style) {
    const auto all = [](std::initializer_list<std::pair<const char*, const char*>> list) {
        Settings::Named named;
        for (const auto& [name, content] : list) named[name] = {.content = content};
        return named;
    };
    const char* const end = "<|endoftext|>";
    switch (style) {
        case Style::roberta:
        case Style::blenderbot: {
            Settings::Named named = all({{"bos_token", "<s>"},
                                         {"eos_token", "</s>"},
                                         {"unk_token", "<unk>"},
                                         {"sep_token", "</s>"},
                                         {"pad_token", "<pad>"},
                                         {"cls_token", "<s>"},
                                         {"mask_token", "<mask>"}});
            named["mask_token"].strip_left = style == Style::blenderbot;
            return named;
        }
        case Style::deberta:
            return all({{"bos_token", "[CLS]"},
                        {"eos_token", "[SEP]"},
                        {"unk_token", "[UNK]"},
                        {"sep_token", "[SEP]"},
                        {"pad_token", "[PAD]"},
                        {"cls_token", "[CLS]"},
                        {"mask_token", "[MASK]"}});
        case Style::gpt_neox:
            return all({{"bos_token", end}, {"eos_token", end}, {"unk_token", end}, {"pad_token", "<|padding|>"}});
        case Style::qwen2:
            return all({{"eos_token", end}, {"unk_token", end}, {"pad_token", end}});
        case Style::bert:
            return all({{"unk_token", "[UNK]"},
                        {"sep_token", "[SEP]"},
                        {"pad_token", "[PAD]"},
                        {"cls_token", "[CLS]"},
                        {"mask_token", "[MASK]"}});
        case Style::mpnet: {
            Settings::Named named = all({{"bos_token", "<s>"},
                                         {"eos_token", "</s>"},
                                         {"unk_token", "[UNK]"},
                                         {"sep_token", "</s>"},
                                         {"pad_token", "<pad>"},
                                         {"cls_token", "<s>"},
                                         {"mask_token", "<mask>"}});
            named["mask_token"].strip_left = true;
            return named;
        }
        case Style::esm:
            return all({{"eos_token", "<eos>"},
                        {"unk_token", "<unk>"},
                        {"pad_token", "<pad>"},
                        {"cls_token", "<cls>"},
                        {"mask_token", "<mask>"}});
        case Style::clip:
            return all({{"bos_token", "<|startoftext|>"}, {"eos_token", end}, {"unk_token", end}, {"pad_token", end}});
        default:
            return all({{"bos_token", end}, {"eos_token", end}, {"unk_token", end}});
    }
}

/// Builds the document from the pieces, the settings and the style.
class Document {
public:
    Document(const fs::path& folder, const Settings& settings, Style style)
        : folder_(folder), settings_(settings), style_(style), named_(settings.named(default_tokens(style))) {
        if (style == Style::blenderbot && settings.is_plain("mask_token")) named_.at("mask_token").strip_left = true;
    }

    json make() {
        json pieces = has_lines(style_) ? read_vocabulary_lines(folder_ / "vocab.txt")
                                        : read_vocabulary_json(folder_ / "vocab.json");
        const json tokens = added_tokens(pieces);
        json document = {{"version", "1.0"}, {"added_tokens", tokens}, {"post_processor", post_processor()}};
        if (style_ == Style::esm) {
            // Python's white space has four characters more than Unicode's.
            document["pre_tokenizer"] = {{"type", "Split"},
                                         {"pattern", {{"Regex", R"([\s\x1c-\x1f]+)"}}},
                                         {"behavior", "Removed"},
                                         {"invert", false}};
            document["model"] = {{"type", "WordLevel"}, {"unk_token", text("unk_token")}};
        } else if (is_word_piece(style_)) {
            document["normalizer"] = {{"type", "BertNormalizer"},
                                      {"clean_text", true},
                                      {"handle_chinese_chars", settings_.flag("tokenize_chinese_chars", true)},
                                      {"strip_accents", nullptr},
                                      {"lowercase", settings_.flag("do_lower_case", true)}};
            if (const auto strip = settings_.choice("strip_accents")) document["normalizer"]["strip_accents"] = *strip;
            document["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
            document["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
            document["model"] = {{"type", "WordPiece"},
                                 {"unk_token", text("unk_token")},
                                 {"continuing_subword_prefix", "##"},
                                 {"max_input_chars_per_word", 100}};
        } else {
            if (style_ == Style::gpt_neox || style_ == Style::qwen2) document["normalizer"] = {{"type", "NFC"}};
            if (style_ == Style::clip) document["normalizer"] = clip_normalizer();
            document["pre_tokenizer"] = byte_pre_tokenizer();
            document["decoder"] = style_ == Style::clip ? clip_decoder() : byte_level();
            document["model"] = {{"type", "BPE"}, {"merges", read_merges(folder_ / "merges.txt", pieces)}};
            if (style_ == Style::clip) {
                document["model"]["end_of_word_suffix"] = "</w>";
                document["model"]["unk_token"] = text("unk_token");
            }
        }
        document["model"]["vocab"] = std::move(pieces);
        return document;
    }

private:
    // The tokens, and their ids: those of the vocabulary, then on from its size.
    json added_tokens(const json& pieces) {
        std::vector<TokenEntry> tokens = settings_.tokens(named_);
        if (style_ == Style::qwen2) {  // its special tokens are added once more, as plain ones
            for (const auto& [name, token] : named_) tokens.push_back({.content = token.content});
            for (const TokenEntry& token : settings_.further()) tokens.push_back({.content = token.content});
        }
        if (style_ == Style::esm) {  // every piece is found wherever it is, the longest first
            for (TokenEntry& token : tokens) token.normalized = false;
            for (const auto& [piece, id] : pieces.items()) {
                const auto same = [&piece = piece](const TokenEntry& token) { return token.content == piece; };
                if (std::any_of(tokens.begin(), tokens.end(), same)) continue;
                tokens.push_back({.content = piece, .normalized = false, .special = false});
            }
        }
        json list = json::array();
        std::size_t next = pieces.size();
        for (const TokenEntry& token : tokens) {
            if (token.content.empty()) continue;
            const auto known = pieces.find(token.content);
            const auto id = known != pieces.end() ? *known : json(next);
            if (ids_.try_emplace(token.content, id).second && known == pieces.end()) ++next;
            list.push_back({{"id", 0},
                            {"content", token.content},
                            {"single_word", token.single_word},
                            {"lstrip", token.strip_left},
                            {"rstrip", token.strip_right},
                            {"normalized", token.normalized.value_or(!token.special)},
                            {"special", token.special}});
        }
        return list;
    }

    std::string text(std::string_view name) const {
        const auto token = named_.find(name);
        if (token == named_.end()) {
            throw Error(ErrorCode::mismatch,
                        escaped((folder_ / "tokenizer_config.json").string()) + ": " + std::string(name),
                        "expected a token, which this kind of tokenizer needs", "found null");
        }
        return token->second.content;
    }

    json byte_level() const {
        return {{"type", "ByteLevel"},
                {"add_prefix_space", settings_.flag("add_prefix_space", style_ == Style::blenderbot)},
                {"trim_offsets", true},
                {"use_regex", style_ != Style::qwen2}};
    }

    static json clip_normalizer() {
        const json space = {{"type", "Replace"}, {"pattern", {{"Regex", "\\s+"}}}, {"content", " "}};
        return {{"type", "Sequence"},
                {"normalizers", json::array({{{"type", "NFC"}}, space, {{"type", "Lowercase"}}})}};
    }

    // As transformers' class after decoding: ends of words become spaces.
    json clip_decoder() const {
        const json ends = {{"type", "Replace"}, {"pattern", {{"String", "</w>"}}}, {"content", " "}};
        const json strip = {{"type", "Strip"}, {"content", " "}, {"start", 1 << 30}, {"stop", 1 << 30}};
        return {{"type", "Sequence"}, {"decoders", json::array({byte_level(), ends, strip})}};
    }

    json byte_pre_tokenizer() const {
        if (style_ != Style::qwen2 && style_ != Style::clip) return byte_level();
        const bool clip = style_ == Style::clip;
        const char* const pattern =
            clip
                ? R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)"
                : R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
        const json split = {{"type", "Split"},
                            {"pattern", {{"Regex", pattern}}},
                            {"behavior", clip ? "Removed" : "Isolated"},
                            {"invert", clip}};
        return {{"type", "Sequence"}, {"pretokenizers", json::array({split, byte_level()})}};
    }

    json post_processor() const {
        switch (style_) {
            case Style::bert:
            case Style::deberta:
                return around(text("cls_token"), text("sep_token"));
            case Style::esm: {
                const auto end = named_.find("eos_token");
                return around(text("cls_token"), end == named_.end() ? std::string() : end->second.content);
            }
            case Style::roberta:
                return roberta(settings_.flag("trim_offsets", true), settings_.flag("add_prefix_space", false));
            case Style::mpnet:
                return roberta(true, false);
            case Style::clip:
                return roberta(false, false);
            case Style::codegen:
                if (!settings_.choice("add_bos_token") && !settings_.choice("add_eos_token")) {
                    return {{"type", "ByteLevel"},
                            {"add_prefix_space", true},
                            {"trim_offsets", false},
                            {"use_regex", true}};
                }
                break;
            default:
                break;
        }
        const auto wanted = [&](const char* flag, const char* name) {
            const auto token = named_.find(name);
            return settings_.flag(flag, false) && token != named_.end() ? token->second.content : std::string();
        };
        return around(wanted("add_bos_token", "bos_token"), wanted("add_eos_token", "eos_token"));
    }

    // One token before the text and one behind it; either may be missing.
    json around(const std::string& first, const std::string& last) const {
        json special = json::object();
        json single = json::array();
        const auto put = [&](const std::string& token) {
            if (token.empty()) return;
            single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
            special[token] = {{"id", token}, {"ids", json::array({ids_.at(token)})}, {"tokens", json::array({token})}};
        };
        put(first);
        single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
        put(last);
        return {
            {"type", "TemplateProcessing"}, {"single", single}, {"pair", json::array()}, {"special_tokens", special}};
    }

    json roberta(bool trim_offsets, bool add_prefix_space) const {
        const std::string first = text(style_ == Style::clip ? "bos_token" : "cls_token");
        const std::string last = text(style_ == Style::clip ? "eos_token" : "sep_token");
        return {{"type", "RobertaProcessing"},
                {"sep", json::array({last, ids_.at(last)})},
                {"cls", json::array({first, ids_.at(first)})},
                {"trim_offsets", trim_offsets},
                {"add_prefix_space", add_prefix_space}};
    }

    const fs::path& folder_;
    const Settings& settings_;
    Style style_;
    Settings::Named named_;
    std::unordered_map<std::string, json> ids_;  ///< of added tokens
};

}  // namespace

bool has_older_files(const fs::path& folder) {
    return has_merges(folder) || has_file(folder, "vocab.txt");
}

json document_of_older_files(const fs::path& folder) {
    const Settings settings(folder);
    if (settings.flag("split_special_tokens", false)) {
        throw Error(ErrorCode::unsupported,
                    escaped((folder / "tokenizer_config.json").string()) + ": split_special_tokens", "expected false",
                    "found true");
    }
    return Document(folder, settings, style_of(folder, settings)).make();
}

namespace {

TextEnds ends_of(const Settings::Named& named) {
    const auto content = [&](const char* name) {
        const auto token = named.find(name);
        return token == named.end() ? std::nullopt : std::optional(token->second.content);
    };
    return {content("bos_token"), content("eos_token")};
}

}  // namespace

TextEnds text_ends(const fs::path& folder) {
    const Settings settings(folder);
    // The generic class has no tokens of its own, whatever the model is.
    const Style style = settings.tokenizer_class() == "PreTrainedTokenizer" ? Style::unknown : named_style(settings);
    return ends_of(settings.named(style == Style::unknown ? Settings::Named{} : default_tokens(style)));
}

TextEnds text_ends(const json& tokenizer_config, const std::string& where) {
    return ends_of(Settings(tokenizer_config, where).named({}));
}

}  // namespace headscope::tokenizer
