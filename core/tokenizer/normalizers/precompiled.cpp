// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/base/text/text.h"
#include "core/tokenizer/normalizers/normalizer.h"
#include "core/tokenizer/unicode/segments.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

std::optional<std::string> decoded_base64(std::string_view text) {
    static constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::array<std::int8_t, 256> values{};
    values.fill(-1);
    for (std::size_t i = 0; i < alphabet.size(); ++i) {
        values[static_cast<unsigned char>(alphabet[i])] = static_cast<std::int8_t>(i);
    }
    if (text.size() % 4 != 0) return std::nullopt;
    for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
    std::string bytes;
    bytes.reserve(text.size() / 4 * 3);
    std::uint32_t bits = 0;
    int count = 0;
    for (const char letter : text) {
        const int value = values[static_cast<unsigned char>(letter)];
        if (value < 0) return std::nullopt;
        bits = bits << 6 | static_cast<std::uint32_t>(value);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes.push_back(static_cast<char>(static_cast<unsigned char>(bits >> count & 0xFF)));
    }
    if (count >= 6 || (bits & ((1u << count) - 1)) != 0) return std::nullopt;  // leftovers that no encoder writes
    return bytes;
}

/// Sentencepiece's rules: a map from short strings to strings, compiled into a double array (Aoe 1989, as darts-clone
/// lays it out): a count of bytes, that many bytes of 32-bit units, then the results, each ended by NUL.
class CharacterMap {
public:
    explicit CharacterMap(const JsonView& field) : where_(field.where()) {
        // Binary where it comes from a sentencepiece model itself.
        const auto bytes = field.value().is_binary() ? std::optional(text_of(field.value().get_binary()))
                                                     : decoded_base64(field.string());
        if (!bytes) field.refuse(ErrorCode::format, "expected base64");
        std::uint32_t size = 0;
        if (bytes->size() < sizeof size)
            field.refuse(ErrorCode::format, "expected a character map of at least 4 bytes");
        std::memcpy(&size, bytes->data(), sizeof size);  // little endian, as every machine that this is built for
        size -= size % 4;
        if (size > bytes->size() - sizeof size) {
            throw Error(ErrorCode::format, where_, "expected a trie of " + std::to_string(size) + " bytes",
                        "found " + std::to_string(bytes->size() - sizeof size));
        }
        units_.resize(size / 4);
        if (size > 0) std::memcpy(units_.data(), bytes->data() + sizeof size, size);
        texts_ = bytes->substr(sizeof size + size);
        if (const std::size_t bad = find_invalid_utf8(texts_); bad != std::string::npos) {
            throw Error(ErrorCode::format, where_, "expected results in UTF-8",
                        "found none at byte " + std::to_string(sizeof size + size + bad) + " of the map");
        }
        for (unsigned byte = 1; byte < 128; ++byte) {
            const char letter = static_cast<char>(byte);
            begins_[byte] = find({&letter, 1}).has_value();
        }
    }

    /// Replacement of the shortest prefix of `text` that has a rule.
    std::optional<std::string_view> find(std::string_view text) const {
        std::optional<std::string_view> found;
        each(text, [&](std::size_t, std::string_view rule) {
            found = rule;
            return false;
        });
        return found;
    }

    struct Longest {
        std::size_t length = 0;  ///< bytes of the beginning; 0: none has a rule
        std::string_view result;
    };
    Longest find_longest(std::string_view text) const {
        Longest found;
        each(text, [&](std::size_t length, std::string_view rule) {
            found = {length, rule};
            return true;
        });
        return found;
    }

    bool changes_ascii(char letter) const { return begins_[static_cast<unsigned char>(letter)]; }

private:
    static std::string text_of(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

    /// Calls take(length, result) for each beginning of `text` that has a rule, from the shortest on, while that says
    /// true.
    template <class Take>
    void each(std::string_view text, const Take& take) const {
        std::size_t node = offset(unit(0));
        for (std::size_t at = 0; at < text.size(); ++at) {
            const auto byte = static_cast<unsigned char>(text[at]);
            if (byte == 0) break;
            node ^= byte;
            const std::uint32_t own = unit(node);
            if ((own & 0x800000FFu) != byte) break;
            node ^= offset(own);
            if ((own >> 8 & 1) != 0 && !take(at + 1, result(unit(node) & 0x7FFFFFFFu))) break;
        }
    }

    [[noreturn]] void refuse(const std::string& found) const {
        throw Error(ErrorCode::format, where_, "expected a trie whose links stay inside it", "found " + found);
    }

    std::uint32_t unit(std::size_t at) const {
        if (at >= units_.size()) {
            refuse("one to unit " + std::to_string(at) + " of " + std::to_string(units_.size()));
        }
        return units_[at];
    }

    static std::size_t offset(std::uint32_t unit) {
        return static_cast<std::size_t>(unit >> 10) << ((unit & (1u << 9)) >> 6);
    }

    std::string_view result(std::size_t at) const {
        if (at > texts_.size() || (at < texts_.size() && is_continuation(texts_[at]))) {
            refuse("one to byte " + std::to_string(at) + " of the results");
        }
        const std::size_t end = texts_.find('\0', at);
        return std::string_view(texts_).substr(at, end == std::string::npos ? end : end - at);
    }

    std::string where_;
    std::vector<std::uint32_t> units_;
    std::string texts_;
    std::array<bool, 256> begins_{};  ///< ASCII characters that have a rule
};

/// The normalisation that came with a sentencepiece model. The reference looks up whole grapheme clusters of up to 5
/// bytes first, and takes the rule of their beginning for all of them; then character by character.
class Precompiled final : public Normalizer {
public:
    explicit Precompiled(const JsonView& description) : map_(description.at("precompiled_charsmap")) {}

    void apply(AlignedText& text) const override {
        const std::string& old = text.text();
        bool changes_any = false;
        for (std::size_t at = 0; at < old.size() && !changes_any; ++at) {
            changes_any = static_cast<signed char>(old[at]) < 0 || map_.changes_ascii(old[at]);
        }
        if (!changes_any) return;

        Transformation changes(text);
        changes_any = false;
        walk(old, [&](std::string_view part, const std::optional<std::string_view>& result) {
            if (!result) {
                for (std::size_t at = 0; at < part.size();) {
                    const Decoded c = decode_utf8(part, at);
                    changes.add({c.point, 0});
                    at += c.length;
                }
                return;
            }
            changes_any = true;
            put(part, *result, changes);
        });
        if (changes_any) changes.finish();
    }

private:
    template <class Take>
    void walk(std::string_view text, const Take& take) const {
        constexpr std::size_t longest_cluster = 5;
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = cluster_end(text, begin);
            if (end - begin <= longest_cluster) {
                const std::string_view cluster = text.substr(begin, end - begin);
                if (const auto result = map_.find(cluster)) {
                    take(cluster, result);
                    begin = end;
                    continue;
                }
            }
            while (begin < end) {
                const std::string_view character = text.substr(begin, utf8_length(text[begin]));
                take(character, map_.find(character));
                begin += character.size();
            }
        }
    }

    // The reference's alignment: the result's characters stand for the part's one by one; those beyond are inserted.
    // Of missing ones the last character there is makes up - which may be one of an earlier part.
    static void put(std::string_view part, std::string_view result, Transformation& changes) {
        const auto old_count = static_cast<std::int32_t>(count_utf8(part));
        std::int32_t count = 0;
        for (std::size_t at = 0; at < result.size(); ++count) {
            const Decoded c = decode_utf8(result, at);
            changes.add({c.point, count < old_count ? 0 : 1});
            at += c.length;
        }
        if (count < old_count && !changes.empty()) changes.last().kind += count - old_count;
    }

    CharacterMap map_;
};

/// sentencepiece's own rules, where transformers leaves them to that package: the longest prefix with a rule,
/// repeatedly; spaces at both ends and after another one are dropped; "\u2581" for a space, and one more before the
/// text.
class SentencePieceRules final : public Normalizer {
public:
    explicit SentencePieceRules(const JsonView& description)
        : removes_(description.at("remove_extra_whitespaces").boolean()),
          prefixes_(description.at("add_dummy_prefix").boolean()),
          codes_(description.boolean_or("language_codes", false)) {
        if (const auto map = description.find("precompiled_charsmap")) map_.emplace(*map);
    }

    void apply(AlignedText& text) const override {
        const std::string& old = text.text();
        AlignedBuilder builder(text);
        SpanReader spans(text);
        std::size_t at = 0;
        if (codes_ && old.starts_with(">>")) {  // ">>de<<" is a token, not text
            const std::size_t end = old.find("<<");
            if (end != std::string::npos) builder.copy(0, at = end + 2);
        }
        std::vector<Span> held;  // spaces that are left out where nothing follows
        bool after_space = removes_;
        for (bool first = true; at < old.size();) {
            Part part = part_at(old, at);
            const Span span = spans.of(at, at + part.length);
            at += part.length;
            if (first && !(removes_ && part.result == " ")) {
                if (prefixes_) held.push_back(span);
                first = false;
            }
            while (after_space && part.result.starts_with(' ')) part.result.remove_prefix(1);
            for (std::size_t i = 0; i < part.result.size();) {
                const std::size_t length = utf8_length(part.result[i]);
                const std::string_view character = part.result.substr(i, length);
                i += length;
                if (character == " " || character == space) {
                    held.push_back(span);
                    continue;
                }
                put(held, builder);
                builder.put(character, span);
            }
            if (!part.result.empty()) after_space = part.result.ends_with(' ');
            if (!removes_) after_space = false;
        }
        if (!removes_) put(held, builder);
        text = builder.finish();
    }

private:
    static constexpr std::string_view space = "\xE2\x96\x81";

    struct Part {
        std::size_t length;  ///< bytes of the text
        std::string_view result;
    };
    Part part_at(std::string_view text, std::size_t at) const {
        if (map_) {
            const CharacterMap::Longest rule = map_->find_longest(text.substr(at));
            if (rule.length > 0) return {rule.length, rule.result};
        }
        const std::size_t length = utf8_length(text[at]);
        return {length, text.substr(at, length)};
    }

    static void put(std::vector<Span>& held, AlignedBuilder& builder) {
        for (const Span& span : held) builder.put(space, span);
        held.clear();
    }

    std::optional<CharacterMap> map_;
    bool removes_, prefixes_, codes_;
};

}  // namespace

std::unique_ptr<Normalizer> make_sentence_piece_rules(const JsonView& description) {
    return std::make_unique<SentencePieceRules>(description);
}

std::unique_ptr<Normalizer> make_precompiled(const JsonView& description) {
    return std::make_unique<Precompiled>(description);
}

}  // namespace headscope::tokenizer
