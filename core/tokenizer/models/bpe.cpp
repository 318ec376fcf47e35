// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <limits>
#include <span>
#include <utility>

#include "core/base/progress.h"
#include "core/tokenizer/byte_level.h"
#include "core/tokenizer/decoders/decoder.h"
#include "core/tokenizer/document.h"
#include "core/tokenizer/models/merges.h"
#include "core/tokenizer/models/model.h"
#include "core/tokenizer/models/word_cache.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

constexpr std::int32_t none = -1;

// "a b" or ["a", "b"].
template <class Where>
MergeText read_pair(const MergeText& merge, const Where& where, const Vocabulary& vocabulary) {
    if (merge.is_pair) return merge;
    const std::size_t space = merge.left.find(' ');
    if (space == std::string_view::npos || merge.left.find(' ', space + 1) != std::string_view::npos) {
        throw Error(ErrorCode::format, where(), "expected two pieces with one space between them",
                    "found \"" + escaped(merge.left, 80) + "\"");
    }
    MergeText pair{merge.left.substr(0, space), merge.left.substr(space + 1), true};
    // A file that went through a system with other line ends.
    if (pair.right.ends_with('\r') && vocabulary.id(pair.right) < 0) pair.right.remove_suffix(1);
    return pair;
}

/// Byte-pair encoding, of characters or of bytes, with the variations that tokenizer.json knows. Its "dropout", a
/// device of training, is ignored.
class Bpe final : public Model {
public:
    explicit Bpe(const JsonView& description)
        : Model(description.at("vocab")),
          prefix_(description.string_or("continuing_subword_prefix", "")),
          suffix_(description.string_or("end_of_word_suffix", "")),
          unknown_(description.string_or("unk_token", "")),
          has_unknown_(description.has("unk_token")),
          fuse_unknown_(description.boolean_or("fuse_unk", false)),
          byte_fallback_(description.boolean_or("byte_fallback", false)),
          ignore_merges_(description.boolean_or("ignore_merges", false)),
          where_(description.where()) {
        read_merges(description.at("merges"));
        prepare();
    }

    bool works_on_bytes() const override { return works_on_bytes_; }
    bool spells_bytes() const override { return byte_fallback_; }

    void tokenize(const Word& word, TokenQueue& tokens) const override {
        if (ignore_merges_) {
            const std::int32_t whole = word.bytes ? whole_.find(word.text) : vocabulary().id(word.text);
            if (whole != none) {
                tokens.add({whole, word.begin, word.begin + static_cast<std::uint32_t>(word.text.size())});
                return;
            }
        }
        if (word.text.size() <= WordCache::longest_word || !can_part_) {
            merge_part(word, tokens);
            return;
        }
        part(word, tokens);
    }

private:
    void read_merges(const JsonView& merges) {
        const std::size_t count = packed_size(merges);
        if (count > std::numeric_limits<std::uint32_t>::max() / 2) {
            throw Error(ErrorCode::limit, merges.where(), "expected fewer merges", "found " + std::to_string(count));
        }
        merges_.reserve(count);
        joints_.reserve(count);
        std::uint32_t rank = 0;
        std::string whole;
        each_merge(merges, [&](std::size_t index, const MergeText& merge) {
            if (!merge.is_pair && merge.left.starts_with("#version")) return;
            // Only what is wrong pays for the name of its place.
            const auto where = [&] { return merges.where() + "[" + std::to_string(index) + "]"; };
            const auto known = [&](std::string_view piece) {
                const std::int32_t id = vocabulary().id(piece);
                if (id < 0) {
                    throw Error(ErrorCode::mismatch, where(), "expected pieces of the vocabulary",
                                "found \"" + escaped(piece, 60) + "\", which it lacks");
                }
                return id;
            };
            const MergeText pair = read_pair(merge, where, vocabulary());
            const std::int32_t left = known(pair.left);
            const std::int32_t right = known(pair.right);
            if (pair.right.size() < prefix_.size()) {
                throw Error(ErrorCode::mismatch, where(), "expected a second piece with the prefix",
                            "found \"" + escaped(pair.right, 60) + "\"");
            }
            whole.assign(pair.left).append(pair.right.substr(prefix_.size()));
            merges_.add(left, right, {rank++, known(whole)});
            joints_.emplace_back(left, right);
        });
    }

    void prepare() {
        static std::atomic<std::uint64_t> models{0};
        number_ = ++models;
        fallback_.fill(none);
        works_on_bytes_ = prefix_.empty() && suffix_.empty();
        for (unsigned byte = 0; byte < 256; ++byte) {
            bytes_[byte] = vocabulary().id(byte_spelling(static_cast<unsigned char>(byte)));
            works_on_bytes_ = works_on_bytes_ && bytes_[byte] >= 0;
            char name[8];
            std::snprintf(name, sizeof name, "<0x%02X>", byte);
            if (byte_fallback_) fallback_[byte] = vocabulary().id(name);
        }
        for (unsigned c = 0; c < 128; ++c) ascii_[c] = vocabulary().id(std::string(1, static_cast<char>(c)));
        if (has_unknown_) unknown_id_ = vocabulary().id(unknown_);
        prepare_parting();
        if (!ignore_merges_ || !works_on_bytes_) return;
        for (const Vocabulary::Entry& entry : vocabulary().entries()) {
            if (const auto bytes = spelled_bytes(entry.piece)) whole_.add(*bytes, entry.id);
        }
    }

    // Merges cross the gap between two characters only if some merge joins a piece that ends with the one and a piece
    // that begins with the other. Where none does, a long word falls into parts that have nothing to do with each
    // other: models without a pre-tokeniser get a whole text as one word, but their pieces hold no space within.
    void prepare_parting() {
        can_part_ = prefix_.empty() && suffix_.empty();
        bridges_.reserve(256);  // grows: few pairs of characters make many merges
        for (const auto& [left, right] : joints_) {
            const std::string_view before = vocabulary().piece(left);
            const std::string_view after = vocabulary().piece(right);
            // A byte or an unknown can be a symbol as a whole; a merge with them would not fit this reasoning.
            can_part_ = can_part_ && !before.empty() && !after.empty() && !is_odd_symbol(left) && !is_odd_symbol(right);
            if (!can_part_) break;
            const std::int32_t last = vocabulary().id(before.substr(previous_utf8(before, before.size())));
            const std::int32_t first = vocabulary().id(after.substr(0, utf8_length(after[0])));
            if (last >= 0 && first >= 0) bridges_.add(last, first, {});
        }
        joints_ = {};
    }

    bool is_odd_symbol(std::int32_t id) const {
        return (has_unknown_ && id == unknown_id_) ||
               (byte_fallback_ && fallback_byte(vocabulary().piece(id)).has_value());
    }

    void part(const Word& word, TokenQueue& tokens) const {
        const std::string_view text = word.text;
        // Characters without a piece that leave no token are not counted: the reference's offsets close up over them.
        std::uint32_t place = word.begin;
        const auto merge = [&](std::size_t begin, std::size_t end) {
            place = merge_part({text.substr(begin, end - begin), place, word.bytes, word.cancellation}, tokens);
            tokens.hand_on_some();
        };
        std::size_t begin = 0;
        std::int32_t last = none;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t length = word.bytes ? 1 : utf8_length(text[at]);
            const std::int32_t symbol =
                word.bytes ? bytes_[static_cast<unsigned char>(text[at])] : character(text.substr(at, length));
            if (last != none && symbol != none && bridges_.find(last, symbol) == nullptr) {
                merge(begin, at);
                begin = at;
                if (word.cancellation != nullptr) word.cancellation->check();
            }
            last = symbol;
            at += length;
        }
        merge(begin, text.size());
    }

    std::int32_t character(std::string_view spelling) const {
        return spelling.size() == 1 ? ascii_[static_cast<unsigned char>(spelling[0])] : vocabulary().id(spelling);
    }

    // A word or an independent part of one, without ignore_merges. Returns where its last token ends.
    std::uint32_t merge_part(const Word& word, TokenQueue& tokens) const {
        static thread_local WordCache cache;
        static thread_local SymbolList symbols;
        const std::string_view text = word.text;
        const bool is_short = text.size() <= WordCache::longest_word;
        const std::uint64_t hash = is_short ? hash_bytes(text) + word.bytes : 0;
        WordCache::Entry* const entry = is_short ? &cache.slot(number_, hash) : nullptr;
        std::uint32_t at = word.begin;
        if (entry != nullptr && WordCache::matches(*entry, hash, text)) {
            for (std::size_t i = 0; i < entry->count; ++i) {
                tokens.add({entry->ids[i], at, at + entry->lengths[i]});
                at += entry->lengths[i];
            }
            return at;
        }
        const std::size_t first = tokens.waiting().size();
        symbols.clear(text.size());
        if (word.bytes) {
            for (const char byte : text) symbols.add(bytes_[static_cast<unsigned char>(byte)], 1);
        } else {
            add_characters(text, symbols);
        }
        symbols.merge(merges_, word.cancellation);
        // The bytes of a prefix or suffix that fell back to bytes stand for none of the text; the reference counts on.
        const std::uint32_t limit = word.begin + static_cast<std::uint32_t>(text.size());
        symbols.each([&](std::int32_t id, std::uint32_t length) {
            tokens.add({id, std::min(at, limit - 1), std::min(at + length, limit)});
            at += length;
            if (!is_short) tokens.hand_on_some();
        });
        symbols.shrink();
        if (entry != nullptr && at <= limit) remember(*entry, hash, text, std::span(tokens.waiting()).subspan(first));
        return at;
    }

    std::int32_t unknown_id() const {
        if (unknown_id_ < 0) {
            throw Error(ErrorCode::mismatch, where_, "expected an unk_token of the vocabulary",
                        "found \"" + escaped(unknown_, 60) + "\"");
        }
        return unknown_id_;
    }

    bool add_fallback(std::string_view spelling, SymbolList& symbols) const {
        for (const char byte : spelling) {
            if (fallback_[static_cast<unsigned char>(byte)] < 0) return false;
        }
        for (const char byte : spelling) symbols.add(fallback_[static_cast<unsigned char>(byte)], 1);
        return true;
    }

    // The order of things is the reference's, odd corners included: a pending unknown stays pending over bytes.
    void add_characters(std::string_view text, SymbolList& symbols) const {
        std::uint32_t unknown = 0;  // bytes of an unknown that is not added yet
        std::string spelling;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t length = utf8_length(text[at]);
            std::string_view character = text.substr(at, length);
            const bool first = at == 0;
            const bool last = at + length == text.size();
            at += length;
            if ((!first && !prefix_.empty()) || (last && !suffix_.empty())) {
                spelling = first ? std::string(character) : prefix_ + std::string(character);
                if (last) spelling += suffix_;
                character = spelling;
            }
            const auto bytes = static_cast<std::uint32_t>(length);
            if (const std::int32_t id = vocabulary().id(character); id >= 0) {
                if (unknown > 0) symbols.add(unknown_id(), unknown);
                unknown = 0;
                symbols.add(id, bytes);
            } else if (!(byte_fallback_ && add_fallback(character, symbols)) && has_unknown_) {
                if (unknown > 0 && !fuse_unknown_) symbols.add(unknown_id(), unknown);
                unknown = fuse_unknown_ ? unknown + bytes : bytes;
            }
        }
        if (unknown > 0) symbols.add(unknown_id(), unknown);
    }

    static void remember(WordCache::Entry& entry, std::uint64_t hash, std::string_view text,
                         std::span<const Token> tokens) {
        if (tokens.size() > WordCache::most_tokens) return;
        entry.hash = hash;
        entry.length = static_cast<std::uint8_t>(text.size());
        entry.count = static_cast<std::uint8_t>(tokens.size());
        std::memcpy(entry.word.data(), text.data(), text.size());
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            entry.ids[i] = tokens[i].id;
            entry.lengths[i] = static_cast<std::uint8_t>(tokens[i].end - tokens[i].begin);
        }
    }

    std::string prefix_;
    std::string suffix_;
    std::string unknown_;
    bool has_unknown_;
    bool fuse_unknown_;
    bool byte_fallback_;
    bool ignore_merges_;
    std::string where_;

    MergeTable merges_;
    MergeTable bridges_;                                         ///< characters that some merge joins
    std::vector<std::pair<std::int32_t, std::int32_t>> joints_;  ///< the merges' pairs, until bridges_ is made
    std::array<std::int32_t, 128> ascii_{};                      ///< the piece of each ASCII character
    bool can_part_ = false;
    std::array<std::int32_t, 256> bytes_{};     ///< the piece of each byte-level character
    std::array<std::int32_t, 256> fallback_{};  ///< "<0x41>" and so on
    StringTable whole_;                         ///< byte-level pieces by the bytes they stand for
    std::int32_t unknown_id_ = none;
    bool works_on_bytes_ = false;
    std::uint64_t number_ = 0;  ///< distinguishes this model's words in a shared cache
};

}  // namespace

std::unique_ptr<Model> make_bpe(const JsonView& description) {
    return std::make_unique<Bpe>(description);
}

}  // namespace headscope::tokenizer
