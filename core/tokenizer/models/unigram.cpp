// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "core/base/progress.h"
#include "core/tokenizer/decoders/decoder.h"
#include "core/tokenizer/models/model.h"
#include "core/tokenizer/models/piece_trie.h"
#include "core/tokenizer/models/word_cache.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

constexpr double unknown_penalty = 10;
constexpr std::size_t bytes_per_check = 1 << 16;

struct Scored {
    std::vector<Vocabulary::Entry> pieces;
    std::vector<double> scores;
};

// [["piece", -3.5], ...]
Scored read_pieces(const JsonView& list) {
    list.array();
    if (list.size() >= std::numeric_limits<std::int32_t>::max()) list.refuse(ErrorCode::limit, "expected fewer pieces");
    Scored read;
    read.pieces.reserve(list.size());
    read.scores.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
        const nlohmann::json& entry = list.value()[i];
        if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
            list.at(i).refuse(ErrorCode::format, "expected [\"piece\", score]");
        }
        read.pieces.push_back({static_cast<std::int32_t>(i), entry[0].get<std::string>()});
        read.scores.push_back(entry[1].get<double>());
    }
    return read;
}

/// Kudo's unigram model (2018): of all ways to cut a word into pieces, the one with the highest sum of scores.
class Unigram final : public Model {
public:
    explicit Unigram(const JsonView& description) : Unigram(description, read_pieces(description.at("vocab"))) {}
    /// As sentencepiece itself cuts, with ids of their own: "ids", {"piece": id}, in which "unk_token" stands for
    /// pieces that are not there. Of a document that was made of files; no kind of tokenizer.json.
    Unigram(const JsonView& description, const JsonView& ids)
        : Unigram(description, read_pieces(description.at("vocab")), Vocabulary(ids)) {}

    bool spells_bytes() const override { return byte_fallback_; }
    std::int32_t unknown_shown_as_text() const override { return unknown_.value_or(-1); }

    void tokenize(const Word& word, TokenQueue& tokens) const override {
        static thread_local WordCache cache;
        if (word.text.size() > WordCache::longest_word) return cut(word, tokens);
        const std::uint64_t hash = hash_bytes(word.text);
        WordCache::Entry& entry = cache.slot(number_, hash);
        if (WordCache::matches(entry, hash, word.text)) {
            std::uint32_t at = word.begin;
            for (std::size_t i = 0; i < entry.count; ++i) {
                tokens.add({entry.ids[i], at, at + entry.lengths[i]});
                at += entry.lengths[i];
            }
            return;
        }
        const std::size_t first = tokens.waiting().size();
        cut(word, tokens);
        remember(entry, hash, word, std::span(tokens.waiting()).subspan(first));
    }

private:
    static constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();

    Unigram(const JsonView& description, Scored read)
        : Model(Vocabulary(std::move(read.pieces))),
          scores_(std::move(read.scores)),
          byte_fallback_(description.boolean_or("byte_fallback", false)),
          where_(description.where()) {
        if (const auto unknown = description.find("unk_id")) {
            const auto count = static_cast<std::int64_t>(vocabulary().count());
            unknown_ = static_cast<std::int32_t>(unknown->integer({0, std::numeric_limits<std::int32_t>::max() - 1}));
            if (*unknown_ >= count) {
                unknown->refuse(ErrorCode::mismatch,
                                "expected the number of one of " + std::to_string(count) + " pieces");
            }
        }
        index(vocabulary().entries());
        for (const Vocabulary::Entry& entry : vocabulary().entries()) {
            // Two digits in capitals only, as the reference spells them.
            const auto byte = fallback_byte(entry.piece);
            if (!byte || std::any_of(entry.piece.begin() + 3, entry.piece.end(), [](char c) { return c >= 'a'; })) {
                continue;
            }
            fallback_[*byte] = entry.id;
        }
    }

    Unigram(const JsonView& description, Scored read, Vocabulary ids)
        : Model(std::move(ids)),
          scores_(std::move(read.scores)),
          byte_fallback_(false),
          where_(description.where()),
          single_(true),
          codes_(description.boolean_or("language_codes", false)) {
        const JsonView unknown = description.at("unk_token");
        unknown_ = vocabulary().id(unknown.string());
        if (*unknown_ < 0) unknown.refuse(ErrorCode::mismatch, "expected a piece of the vocabulary");
        ids_.reserve(read.pieces.size());
        for (const Vocabulary::Entry& entry : read.pieces) ids_.push_back(known_id(entry.piece));
        index(read.pieces);
    }

    void index(const std::vector<Vocabulary::Entry>& entries) {
        static std::atomic<std::uint64_t> models{0};
        number_ = ++models;
        double lowest = std::numeric_limits<double>::infinity();
        std::vector<std::pair<std::string_view, std::int32_t>> pieces;
        pieces.reserve(entries.size());
        for (const Vocabulary::Entry& entry : entries) {
            lowest = std::min(lowest, scores_[static_cast<std::size_t>(entry.id)]);
            longest_ = std::max(longest_, entry.piece.size());
            pieces.emplace_back(entry.piece, entry.id);
        }
        unknown_score_ = sum(lowest, -unknown_penalty);
        trie_ = PieceTrie(std::move(pieces));
        fallback_.fill(-1);
    }

    // Sentencepiece adds in float32: of ways that are as good, its rounding picks one.
    double sum(double a, double b) const { return single_ ? static_cast<double>(static_cast<float>(a + b)) : a + b; }

    std::int32_t known_id(std::string_view piece) const {
        const std::int32_t id = vocabulary().id(piece);
        return id < 0 ? *unknown_ : id;
    }

    void cut(const Word& word, TokenQueue& tokens) const {
        const std::size_t code = codes_ && word.text.starts_with(">>") ? word.text.find("<<") : std::string::npos;
        if (code == std::string::npos) return cut_text(word, tokens);
        const std::size_t size = code + 2;
        const std::uint32_t end = word.begin + static_cast<std::uint32_t>(size);
        tokens.add({known_id(word.text.substr(0, size)), word.begin, end});
        if (size < word.text.size()) cut_text({word.text.substr(size), end, word.bytes, word.cancellation}, tokens);
    }

    void cut_text(const Word& word, TokenQueue& tokens) const {
        // Half the memory where pieces are as short as they always are.
        if (longest_ < Ways<std::uint16_t>::unknown) return search<std::uint16_t>(word, tokens);
        search<std::uint32_t>(word, tokens);
    }

    // The best way to each place of a word, from the place on up to which all is settled.
    template <class Length>
    struct Ways {
        static constexpr Length unknown = Length{1} << (8 * sizeof(Length) - 1);
        std::vector<Length> last;    ///< bytes of the piece that ends there, with `unknown` for none of the vocabulary;
                                     ///< 0: not reached yet
        std::vector<double> scores;  ///< of the places that a piece can reach: at their last bits
    };

    // Viterbi's search. Where no piece reaches across, everything earlier is settled; if there is no such place, only
    // the lattice of one word is kept.
    template <class Length>
    void search(const Word& word, TokenQueue& tokens) const {
        static thread_local Ways<Length> ways;
        constexpr Length unknown = Ways<Length>::unknown;
        const std::string_view text = word.text;
        const std::size_t window = std::bit_ceil(std::min(longest_, text.size()) + 5);  // characters have four at most
        if (ways.scores.size() < window) ways.scores.resize(window);
        const std::size_t mask = ways.scores.size() - 1;
        std::vector<Length>& last = ways.last;
        std::vector<double>& scores = ways.scores;
        // Room for all places, of which only what is used costs memory.
        if (text.size() >= bytes_per_check) last.reserve(text.size() + 1);
        Tail tail{word, nowhere};
        last.assign(1, 0);
        scores[0] = 0;
        std::size_t settled = 0;
        std::size_t reach = 0;
        std::size_t check = bytes_per_check;
        for (std::size_t at = 0; at < text.size();) {
            if (at == reach && at > 0) {
                settle(last, settled, at, tail, tokens);
                last.assign(1, 0);
                settled = at;
            }
            if (at >= check && word.cancellation != nullptr) {
                word.cancellation->check();
                check = at + bytes_per_check;
            }
            const double score = scores[at & mask];
            const std::size_t character = utf8_length(text[at]);
            bool has_character = false;
            const auto arrive = [&](std::size_t length, double added, Length flag) {
                reach = std::max(reach, at + length);
                const std::size_t place = at + length - settled;
                if (last.size() <= place) last.resize(place + 1);
                double& known = scores[(at + length) & mask];
                const double reached = sum(score, added);
                if (last[place] != 0 && !(reached > known)) return;
                if (flag != 0) unknown_id();  // there must be one
                known = reached;
                last[place] = static_cast<Length>(length | flag);
            };
            trie_.find(text.substr(at), [&](std::size_t length, std::int32_t id) {
                arrive(length, scores_[static_cast<std::size_t>(id)], 0);
                has_character = has_character || length == character;
            });
            if (!has_character) arrive(character, unknown_score_, unknown);
            at += character;
        }
        settle(last, settled, text.size(), tail, tokens);
        finish_unknown(tail, static_cast<std::uint32_t>(text.size()), tokens);
        if (last.capacity() > bytes_per_check) last = {};
        if (scores.size() > bytes_per_check) scores = {};
    }

    // Longer than what the cache takes, which wants all tokens of a word at once.
    static bool is_long(const Word& word) { return word.text.size() > WordCache::longest_word; }

    // Unknown characters in a row are one token: where those begin that are not written yet.
    struct Tail {
        const Word& word;
        std::uint32_t unknown = nowhere;
    };

    // Turns the lengths of what ends at the places of the best way into those of what begins there, and writes that.
    template <class Length>
    void settle(std::vector<Length>& last, std::size_t from, std::size_t to, Tail& tail, TokenQueue& tokens) const {
        constexpr Length unknown = Ways<Length>::unknown;
        Length next = 0;
        for (std::size_t place = to - from;;) {
            const Length length = last[place];
            last[place] = next;
            if (place == 0) break;
            next = length;
            place -= length & ~unknown;
        }
        const std::uint32_t origin = tail.word.begin;
        for (std::size_t place = from; place < to;) {
            const Length code = last[place - from];
            const std::size_t length = code & ~unknown;
            const auto begin = static_cast<std::uint32_t>(place);
            const bool is_known = (code & unknown) == 0;
            const std::int32_t index = is_known ? trie_.value(tail.word.text.substr(place, length)) : unknown_id();
            const std::int32_t id = is_known && !ids_.empty() ? ids_[static_cast<std::size_t>(index)] : index;
            place += length;
            if (!is_known || (ids_.empty() && id == unknown_)) {
                if (tail.unknown == nowhere) tail.unknown = begin;
                continue;
            }
            finish_unknown(tail, begin, tokens);
            tokens.add({id, origin + begin, origin + static_cast<std::uint32_t>(place)});
            if (is_long(tail.word)) tokens.hand_on_some();
        }
    }

    void finish_unknown(Tail& tail, std::uint32_t end, TokenQueue& tokens) const {
        if (tail.unknown == nowhere) return;
        const std::string_view text = tail.word.text.substr(tail.unknown, end - tail.unknown);
        const std::uint32_t begin = tail.word.begin + tail.unknown;
        tail.unknown = nowhere;
        const std::uint32_t past = tail.word.begin + end;
        if (const std::int32_t id = vocabulary().id(text); id >= 0) {
            tokens.add({id, begin, past});
            return;
        }
        const auto spelled = [&](char byte) { return fallback_[static_cast<unsigned char>(byte)]; };
        if (byte_fallback_ && std::all_of(text.begin(), text.end(), [&](char byte) { return spelled(byte) >= 0; })) {
            for (const char byte : text) {
                tokens.add({spelled(byte), begin, past});
                if (is_long(tail.word)) tokens.hand_on_some();
            }
            return;
        }
        tokens.add({unknown_id(), begin, past});
    }

    std::int32_t unknown_id() const {
        if (!unknown_) {
            throw Error(ErrorCode::mismatch, where_, "expected an unk_id, for a character that no piece holds",
                        "found none");
        }
        return *unknown_;
    }

    // Words whose tokens lie one after the other, as nearly all do.
    static void remember(WordCache::Entry& entry, std::uint64_t hash, const Word& word, std::span<const Token> tokens) {
        if (tokens.size() > WordCache::most_tokens) return;
        std::uint32_t at = word.begin;
        for (const Token& token : tokens) {
            if (token.begin != at) return;
            at = token.end;
        }
        entry.hash = hash;
        entry.length = static_cast<std::uint8_t>(word.text.size());
        entry.count = static_cast<std::uint8_t>(tokens.size());
        std::memcpy(entry.word.data(), word.text.data(), word.text.size());
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            entry.ids[i] = tokens[i].id;
            entry.lengths[i] = static_cast<std::uint8_t>(tokens[i].end - tokens[i].begin);
        }
    }

    std::vector<double> scores_;     ///< by number of the piece
    std::vector<std::int32_t> ids_;  ///< the same; empty: the number is the id
    bool byte_fallback_;
    std::string where_;
    bool single_ = false, codes_ = false;
    std::optional<std::int32_t> unknown_;
    double unknown_score_ = 0;
    PieceTrie trie_;
    std::size_t longest_ = 0;                   ///< bytes of the longest piece
    std::array<std::int32_t, 256> fallback_{};  ///< "<0x41>" and so on
    std::uint64_t number_ = 0;                  ///< distinguishes this model's words in a shared cache
};

}  // namespace

std::unique_ptr<Model> make_unigram(const JsonView& description) {
    return std::make_unique<Unigram>(description);
}

std::unique_ptr<Model> make_sentence_piece(const JsonView& description) {
    return std::make_unique<Unigram>(description, description.at("ids"));
}

}  // namespace headscope::tokenizer
