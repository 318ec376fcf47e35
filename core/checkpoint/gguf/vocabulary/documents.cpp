// SPDX-License-Identifier: GPL-3.0-or-later
// tokenizer.json of each kind of vocabulary.
#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "core/base/text/text.h"
#include "core/checkpoint/gguf/vocabulary/vocabulary.h"

namespace headscope::checkpoint::gguf {
namespace {

using nlohmann::json;

constexpr std::string_view kSpace = "\u2581";
constexpr std::size_t kBytes = 256;

json document_of(const Vocabulary& vocabulary) {
    return {{"version", "1.0"},      {"truncation", nullptr},    {"padding", nullptr},
            {"normalizer", nullptr}, {"pre_tokenizer", nullptr}, {"added_tokens", vocabulary.added_tokens()}};
}

json replace(std::string_view pattern, std::string_view content) {
    return {{"type", "Replace"}, {"pattern", {{"String", pattern}}}, {"content", content}};
}

std::size_t unknown_of(const Vocabulary& vocabulary, std::size_t otherwise) {
    const std::size_t id = vocabulary.named("unknown_token_id").value_or(otherwise);
    if (id < vocabulary.size()) return id;
    vocabulary.keys().refuse(ErrorCode::mismatch, "tokenizer.ggml.unknown_token_id",
                             "expected an id below " + std::to_string(vocabulary.size()));
}

/// Bytes in the text of a token: <0x0A>.
bool has_all_bytes(const Vocabulary& vocabulary) {
    for (std::size_t byte = 0; byte < kBytes; ++byte) {
        std::array<char, 8> name{};
        std::snprintf(name.data(), name.size(), "<0x%02X>", static_cast<unsigned>(byte));
        if (!vocabulary.id_of(name.data())) return false;
    }
    return true;
}

/// Every cut of every piece into two others, the best piece first: what sentencepiece's merging by scores does.
json merges_by_score(const Vocabulary& vocabulary) {
    const auto can_merge = [&](std::size_t id) {
        const TokenType type = vocabulary.type(id);
        return type == TokenType::normal || type == TokenType::undefined;
    };
    struct Merge {
        std::size_t piece = 0, cut = 0;  ///< bytes of the first half
        double score = 0;
    };
    std::vector<Merge> merges;
    for (std::size_t id = 0; id < vocabulary.size(); ++id) {
        if (!can_merge(id)) continue;
        const std::string& piece = vocabulary.token(id);
        std::vector<std::pair<std::pair<std::size_t, std::size_t>, Merge>> cuts;
        for (std::size_t cut = 1; cut < piece.size(); ++cut) {
            if ((static_cast<unsigned char>(piece[cut]) & 0xC0U) == 0x80U) continue;  // inside a character
            const auto left = vocabulary.id_of(piece.substr(0, cut)), right = vocabulary.id_of(piece.substr(cut));
            if (!left || !right || !can_merge(*left) || !can_merge(*right)) continue;
            cuts.push_back({{*left, *right}, {id, cut, vocabulary.score(id)}});
        }
        std::sort(cuts.begin(), cuts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (const auto& [ids, merge] : cuts) merges.push_back(merge);
    }
    std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) { return a.score > b.score; });
    json list = json::array();
    for (const Merge& merge : merges) {
        const std::string& piece = vocabulary.token(merge.piece);
        list.push_back(json::array({piece.substr(0, merge.cut), piece.substr(merge.cut)}));
    }
    return list;
}

/// The alphabet that byte-level vocabularies spell bytes in.
bool is_byte_letter(char32_t point) {
    return (point >= 0x21 && point <= 0x7E) || (point >= 0xA1 && point <= 0xAC) || (point >= 0xAE && point <= 0x143);
}

bool is_in_bytes(std::string_view token) {
    while (!token.empty()) {
        char32_t point = 0;
        token.remove_prefix(decode_utf8(token, point));
        if (!is_byte_letter(point)) return false;
    }
    return true;
}

std::string base64(std::string_view bytes) {
    constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t three = 0;
        for (std::size_t k = 0; k < 3; ++k)
            three = three << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
        for (std::size_t k = 0; k < 4; ++k) text += i + k > bytes.size() ? '=' : kDigits[(three >> (18 - 6 * k)) & 63U];
    }
    return text;
}

}  // namespace

json byte_level_document(Vocabulary& vocabulary) {
    constexpr const char* kPreKey = "tokenizer.ggml.pre";
    constexpr const char* kMergesKey = "tokenizer.ggml.merges";
    KeyReader& keys = vocabulary.keys();
    const auto split = split_named(keys.text_or(kPreKey, ""));
    if (!split) keys.refuse(ErrorCode::unsupported, kPreKey, "expected a split that is read");
    const std::vector<std::string>* merges = keys.texts(kMergesKey);
    if (merges == nullptr) keys.refuse(ErrorCode::format, kMergesKey, "expected a list of merges");
    json document = document_of(vocabulary);
    document["pre_tokenizer"] = split->pre_tokenizer;
    document["post_processor"] = template_of(vocabulary, read_ends(vocabulary, split->adds_first, false));
    if (document["post_processor"].is_null())
        document["post_processor"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}};
    document["decoder"] = {
        {"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
    for (std::size_t id = 0; id < vocabulary.size(); ++id) {
        if (vocabulary.type(id) == TokenType::normal && !is_in_bytes(vocabulary.token(id))) {
            throw Error(ErrorCode::format, keys.where("tokenizer.ggml.tokens"), "expected tokens spelled in bytes",
                        "found \"" + escaped(vocabulary.token(id), 60) + "\", token " + std::to_string(id));
        }
    }
    document["model"] = {{"type", "BPE"},
                         {"dropout", nullptr},
                         {"unk_token", nullptr},
                         {"continuing_subword_prefix", nullptr},
                         {"end_of_word_suffix", nullptr},
                         {"fuse_unk", false},
                         {"byte_fallback", false},
                         {"ignore_merges", split->ignore_merges},
                         {"vocab", vocabulary.ids()},
                         {"merges", *merges}};
    return document;
}

json sentence_piece_document(Vocabulary& vocabulary) {
    constexpr const char* kExtraKey = "tokenizer.ggml.remove_extra_whitespaces";
    KeyReader& keys = vocabulary.keys();
    if (!vocabulary.has_scores()) keys.refuse(ErrorCode::format, "tokenizer.ggml.scores", "expected scores of pieces");
    if (keys.boolean_or(kExtraKey, false)) keys.refuse(ErrorCode::unsupported, kExtraKey, "expected false");
    keys.ignore("tokenizer.ggml.merges");
    keys.ignore("tokenizer.ggml.pre");
    const std::size_t unknown = unknown_of(vocabulary, 0);
    const bool prefix = keys.boolean_or("tokenizer.ggml.add_space_prefix", true);
    json document = document_of(vocabulary);
    json rules = json::array(),
         back = json::array({replace(kSpace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
    if (prefix) {
        rules.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
        back.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    }
    rules.push_back(replace(" ", kSpace));
    document["normalizer"] = {{"type", "Sequence"}, {"normalizers", rules}};
    document["decoder"] = {{"type", "Sequence"}, {"decoders", back}};
    document["post_processor"] = template_of(vocabulary, read_ends(vocabulary, true, false));
    document["model"] = {{"type", "BPE"},
                         {"dropout", nullptr},
                         {"unk_token", vocabulary.token(unknown)},
                         {"continuing_subword_prefix", nullptr},
                         {"end_of_word_suffix", nullptr},
                         {"fuse_unk", true},
                         {"byte_fallback", has_all_bytes(vocabulary)},
                         {"ignore_merges", false},
                         {"vocab", vocabulary.ids()},
                         {"merges", merges_by_score(vocabulary)}};
    return document;
}

json word_piece_document(Vocabulary& vocabulary) {
    KeyReader& keys = vocabulary.keys();
    for (const char* name : {"pre", "scores", "merges"}) keys.ignore(std::string("tokenizer.ggml.") + name);
    // Words begin with a space in the file, and the parts behind with nothing.
    for (const bool words : {false, true}) {
        for (std::size_t id = 0; id < vocabulary.size(); ++id) {
            if (vocabulary.type(id) == TokenType::control || vocabulary.type(id) == TokenType::unknown) continue;
            const std::string token = vocabulary.token(id);
            const bool bracketed = token.front() == '[' && token.back() == ']';
            const bool word = token.compare(0, kSpace.size(), kSpace) == 0;
            if (bracketed || word != words) continue;
            vocabulary.respell(id, word ? token.substr(kSpace.size()) : "##" + token);
        }
    }
    constexpr std::size_t kUnknown = 100, kFirst = 101, kSeparator = 102;  // of the published vocabularies
    const std::size_t unknown = unknown_of(vocabulary, kUnknown);
    const bool lower = keys.boolean_or("tokenizer.ggml.normalizer.lowercase", true);
    const bool strip = keys.boolean_or("tokenizer.ggml.normalizer.strip_accents", lower);
    json document = document_of(vocabulary);
    document["normalizer"] = {{"type", "BertNormalizer"},
                              {"clean_text", true},
                              {"handle_chinese_chars", true},
                              {"strip_accents", strip},
                              {"lowercase", lower}};
    document["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
    const auto named = [&](const char* key, std::size_t otherwise) {
        const auto id = vocabulary.named(key);
        return id ? id : (otherwise < vocabulary.size() ? std::optional(otherwise) : std::nullopt);
    };
    Ends ends;
    const auto first = named("bos_token_id", kFirst), separator = named("seperator_token_id", kSeparator);
    if (keys.boolean_or("tokenizer.ggml.add_bos_token", true)) ends.first = first;
    (void)keys.boolean_or("tokenizer.ggml.add_eos_token", false);
    if (keys.boolean_or("tokenizer.ggml.add_sep_token", true)) ends.last = ends.separator = separator;
    document["post_processor"] = template_of(vocabulary, ends);
    document["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
    document["model"] = {{"type", "WordPiece"},
                         {"unk_token", vocabulary.token(unknown)},
                         {"continuing_subword_prefix", "##"},
                         {"max_input_chars_per_word", 100},
                         {"vocab", vocabulary.ids()}};
    return document;
}

json unigram_document(Vocabulary& vocabulary) {
    constexpr const char* kMapKey = "tokenizer.ggml.precompiled_charsmap";
    KeyReader& keys = vocabulary.keys();
    if (!vocabulary.has_scores()) keys.refuse(ErrorCode::format, "tokenizer.ggml.scores", "expected scores of pieces");
    keys.ignore("tokenizer.ggml.pre");
    const std::size_t unknown = unknown_of(vocabulary, 2);
    const bool extra_removed = keys.boolean_or("tokenizer.ggml.remove_extra_whitespaces", true);
    const bool prefix = keys.boolean_or("tokenizer.ggml.add_space_prefix", true);
    json document = document_of(vocabulary);
    json rules = json::array();
    if (const Array* map = keys.array(kMapKey); map != nullptr && map->count != 0) {
        if (map->type != ValueType::u8 && map->type != ValueType::i8)
            keys.refuse(ErrorCode::format, kMapKey, "expected an array of bytes");
        rules.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", base64(map->bytes)}});
    }
    const json spaces = {{"type", "Metaspace"},
                         {"replacement", kSpace},
                         {"prepend_scheme", prefix ? "always" : "never"},
                         {"split", true}};
    if (extra_removed) {
        document["pre_tokenizer"] = {{"type", "Sequence"},
                                     {"pretokenizers", json::array({{{"type", "WhitespaceSplit"}}, spaces})}};
    } else {
        // A space goes before the text even where it begins with one.
        if (prefix) rules.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
        rules.push_back(replace(" ", kSpace));
    }
    if (!rules.empty()) document["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::move(rules)}};
    document["decoder"] = spaces;
    document["post_processor"] = template_of(vocabulary, read_ends(vocabulary, false, true));
    json pieces = json::array();
    for (std::size_t id = 0; id < vocabulary.size(); ++id)
        pieces.push_back(json::array({vocabulary.token(id), vocabulary.score(id)}));
    document["model"] = {
        {"type", "Unigram"}, {"unk_id", unknown}, {"byte_fallback", false}, {"vocab", std::move(pieces)}};
    return document;
}

}  // namespace headscope::checkpoint::gguf
