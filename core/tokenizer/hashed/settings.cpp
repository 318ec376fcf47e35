// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/hashed/settings.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/json/json.h"
#include "core/base/text/text.h"

namespace headscope::tokenizer {
namespace {

using enum EmbeddingKind;

/// In the order of EmbeddingKind.
constexpr std::array<std::string_view, 7> kKinds = {"table", "emb", "pool", "add", "proj", "linear", "characters"};
constexpr std::array<std::string_view, 3> kHashes = {"", "md5", "lsh"};
constexpr std::array<std::string_view, kSpecialTokens> kSpecial = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"};

constexpr std::int64_t kMostBits = 1 << 16;
constexpr std::int64_t kMostGroupBits = 24;  // tables of 2^24 code words
constexpr std::int64_t kMostFunctions = 8;
constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max() - kSpecialTokens;

template <std::size_t N>
std::size_t place_in(const std::array<std::string_view, N>& names, const JsonView& value, std::size_t first) {
    const auto found = std::find(names.begin() + static_cast<std::ptrdiff_t>(first), names.end(), value.string());
    if (found == names.end()) {
        std::string list;
        for (std::size_t i = first; i < N; ++i) list += (i == first ? "" : ", ") + std::string(names[i]);
        value.refuse(ErrorCode::unsupported, "expected one of " + list);
    }
    return static_cast<std::size_t>(found - names.begin());
}

bool reads_words(EmbeddingKind kind) {
    return kind != table && kind != characters;
}

std::vector<std::string> keys_of(const HashSettings& settings) {
    std::vector<std::string> keys{"kind"};
    if (settings.kind == characters) keys.insert(keys.end(), {"hash_functions", "buckets"});
    if (!reads_words(settings.kind)) return keys;
    keys.insert(keys.end(), {"hash", settings.hash == WordHashKind::md5 ? "key" : "ngrams", "words"});
    keys.emplace_back(settings.kind == emb ? "rows" : "bits");
    if (settings.kind == pool) keys.emplace_back("group_bits");
    return keys;
}

void refuse_other_keys(const JsonView& embedding, const HashSettings& settings) {
    const std::vector<std::string> known = keys_of(settings);
    for (const std::string& key : embedding.keys()) {
        if (std::find(known.begin(), known.end(), key) != known.end()) continue;
        throw Error(ErrorCode::mismatch, embedding.where(), "expected only " + list_text(known, known.size()),
                    "found " + escaped(key));
    }
}

void read_words(HashSettings& settings, const JsonView& embedding) {
    settings.hash = static_cast<WordHashKind>(place_in(kHashes, embedding.at("hash"), 1));
    settings.key = embedding.string_or("key", settings.key);
    settings.ngrams = embedding.integer_or("ngrams", settings.ngrams, {1, kMostRows});
    const std::string words = embedding.string_or("words", "split");
    if (words != "split" && words != "tokenizer")
        embedding.at("words").refuse(ErrorCode::unsupported, "expected split or tokenizer");
    settings.tokenizer_pieces = words == "tokenizer";
    if (settings.kind == emb) {
        settings.rows = embedding.at("rows").integer({1, kMostRows});
        return;
    }
    const bool is_md5 = settings.hash == WordHashKind::md5;
    settings.bits = is_md5 && !embedding.has("bits") ? kMd5Bits : embedding.at("bits").integer({1, kMostBits});
    if (is_md5 && settings.bits != kMd5Bits)
        embedding.at("bits").refuse(ErrorCode::mismatch, "expected 128, the bits that MD5 has");
    if (settings.kind != pool) return;
    settings.group_bits = embedding.at("group_bits").integer({1, std::min(kMostGroupBits, settings.bits)});
}

}  // namespace

std::string_view special_token(std::int32_t id) {
    return kSpecial.at(static_cast<std::size_t>(id));
}

std::int64_t HashSettings::ids() const {
    return is_table() ? 0 : kSpecialTokens + (kind == emb ? rows : 1);
}

HashSettings read_hash_settings(const JsonView& embedding) {
    HashSettings settings;
    settings.kind = static_cast<EmbeddingKind>(place_in(kKinds, embedding.object().at("kind"), 0));
    if (reads_words(settings.kind)) read_words(settings, embedding);
    if (settings.kind == characters) {
        settings.functions = embedding.at("hash_functions").integer({1, kMostFunctions});
        settings.buckets = embedding.at("buckets").integer({1, kMostRows});
    }
    refuse_other_keys(embedding, settings);
    return settings;
}

std::string hash_settings_json(const HashSettings& settings) {
    nlohmann::json json = {{"kind", kKinds[static_cast<std::size_t>(settings.kind)]}};
    if (settings.kind == characters) {
        json["hash_functions"] = settings.functions;
        json["buckets"] = settings.buckets;
    }
    if (!reads_words(settings.kind)) return json.dump();
    json["hash"] = kHashes[static_cast<std::size_t>(settings.hash)];
    if (settings.hash == WordHashKind::md5) json["key"] = settings.key;
    json["words"] = settings.tokenizer_pieces ? "tokenizer" : "split";
    if (settings.kind == emb)
        json["rows"] = settings.rows;
    else
        json["bits"] = settings.bits;
    if (settings.kind == pool) json["group_bits"] = settings.group_bits;
    return json.dump();
}

}  // namespace headscope::tokenizer
