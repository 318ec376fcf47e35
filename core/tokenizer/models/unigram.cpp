// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "core/base/progress.h"
#include "core/tokenizer/decoders/decoder.h"
#include "core/tokenizer/models/model.h"
#include "core/tokenizer/models/piece_trie.h"
#include "core/tokenizer/models/word_cache.h"
#include "core/tokenizer/utf8.h"

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

    bool spells_bytes() const override { return byte_fallback_; }
    std::int32_t unknown_shown_as_text() const override { return unknown_.value_or(-1); }

    void tokenize(const Word& word, std::vector<Token>& tokens) const override {
        static thread_local WordCache cache;
        if (word.text.size() > WordCache::longest_word) return cut(word, tokens);
        const std::uint64_t hash = hash_bytes(word.text);
        WordCache::Entry& entry = cache.slot(number_, hash);
        if (WordCache::matches(entry, hash, word.text)) {
            std::uint32_t at = word.begin;
            for (std::size_t i = 0; i < entry.count; ++i) {
                tokens.push_back({entry.ids[i], at, at + entry.lengths[i]});
                at += entry.lengths[i];
            }
            return;
        }
        const std::size_t first = tokens.size();
        cut(word, tokens);
        remember(entry, hash, word, std::span(tokens).subspan(first));
    }

private:
    // The best way to one place of the word: its last piece begins at `begin`.
    struct Step {
        double score = 0;
        std::int32_t id = 0;
        std::uint32_t begin = nowhere;
    };
    static constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();

    Unigram(const JsonView& description, Scored read)
        : Model(Vocabulary(std::move(read.pieces))),
          scores_(std::move(read.scores)),
          byte_fallback_(description.boolean_or("byte_fallback", false)),
          where_(description.where()) {
        static std::atomic<std::uint64_t> models{0};
        number_ = ++models;
        if (const auto unknown = description.find("unk_id")) {
            const auto count = static_cast<std::int64_t>(vocabulary().count());
            unknown_ = static_cast<std::int32_t>(unknown->integer({0, std::numeric_limits<std::int32_t>::max() - 1}));
            if (*unknown_ >= count) {
                unknown->refuse(ErrorCode::mismatch,
                                "expected the number of one of " + std::to_string(count) + " pieces");
            }
        }
        double lowest = std::numeric_limits<double>::infinity();
        std::vector<std::pair<std::string_view, std::int32_t>> pieces;
        pieces.reserve(vocabulary().count());
        for (const Vocabulary::Entry& entry : vocabulary().entries()) {
            lowest = std::min(lowest, scores_[static_cast<std::size_t>(entry.id)]);
            pieces.emplace_back(entry.piece, entry.id);
        }
        unknown_score_ = lowest - unknown_penalty;
        trie_ = PieceTrie(std::move(pieces));
        fallback_.fill(-1);
        for (const Vocabulary::Entry& entry : vocabulary().entries()) {
            // Two digits in capitals only, as the reference spells them.
            const auto byte = fallback_byte(entry.piece);
            if (!byte || std::any_of(entry.piece.begin() + 3, entry.piece.end(), [](char c) { return c >= 'a'; })) {
                continue;
            }
            fallback_[*byte] = entry.id;
        }
    }

    // Viterbi's search. Where no piece reaches across, all that is before is settled.
    void cut(const Word& word, std::vector<Token>& tokens) const {
        static thread_local std::vector<Step> best;
        const std::string_view text = word.text;
        Tail tail{word, nowhere};
        best.assign(1, {0, 0, 0});
        std::size_t settled = 0;
        std::size_t reach = 0;
        std::size_t check = bytes_per_check;
        for (std::size_t at = 0; at < text.size();) {
            if (at == reach && at > 0) {
                settle(best, settled, at, tail, tokens);
                best[0].score = best[at - settled].score;
                best.resize(1);
                settled = at;
            }
            if (at >= check && word.cancellation != nullptr) {
                word.cancellation->check();
                check = at + bytes_per_check;
            }
            const double score = best[at - settled].score;
            const std::size_t character = utf8_length(text[at]);
            bool has_character = false;
            const auto wins = [&](std::size_t length, double added) {
                reach = std::max(reach, at + length);
                if (best.size() <= at + length - settled) best.resize(at + length - settled + 1);
                const Step& step = best[at + length - settled];
                return step.begin == nowhere || score + added > step.score;
            };
            const auto arrive = [&](std::size_t length, double added, std::int32_t id) {
                best[at + length - settled] = {score + added, id, static_cast<std::uint32_t>(at)};
            };
            trie_.find(text.substr(at), [&](std::size_t length, std::int32_t id) {
                const double added = scores_[static_cast<std::size_t>(id)];
                if (wins(length, added)) arrive(length, added, id);
                has_character = has_character || length == character;
            });
            if (!has_character && wins(character, unknown_score_)) arrive(character, unknown_score_, unknown_id());
            at += character;
        }
        settle(best, settled, text.size(), tail, tokens);
        finish_unknown(tail, static_cast<std::uint32_t>(text.size()), tokens);
        if (best.capacity() > bytes_per_check) best = {};
    }

    // Unknown characters in a row are one token: where those begin that are not written yet.
    struct Tail {
        const Word& word;
        std::uint32_t unknown = nowhere;
    };

    void settle(const std::vector<Step>& best, std::size_t from, std::size_t to, Tail& tail,
                std::vector<Token>& tokens) const {
        static thread_local std::vector<Token> way;
        way.clear();
        for (std::size_t end = to; end > from;) {
            const Step& step = best[end - from];
            way.push_back({step.id, step.begin, static_cast<std::uint32_t>(end)});
            end = step.begin;
        }
        const std::uint32_t origin = tail.word.begin;
        for (auto piece = way.rbegin(); piece != way.rend(); ++piece) {
            if (piece->id == unknown_) {
                if (tail.unknown == nowhere) tail.unknown = piece->begin;
                continue;
            }
            finish_unknown(tail, piece->begin, tokens);
            tokens.push_back({piece->id, origin + piece->begin, origin + piece->end});
        }
        if (way.capacity() > bytes_per_check) way = {};
    }

    void finish_unknown(Tail& tail, std::uint32_t end, std::vector<Token>& tokens) const {
        if (tail.unknown == nowhere) return;
        const std::string_view text = tail.word.text.substr(tail.unknown, end - tail.unknown);
        const std::uint32_t begin = tail.word.begin + tail.unknown;
        tail.unknown = nowhere;
        const std::uint32_t past = tail.word.begin + end;
        if (const std::int32_t id = vocabulary().id(text); id >= 0) {
            tokens.push_back({id, begin, past});
            return;
        }
        const auto spelled = [&](char byte) { return fallback_[static_cast<unsigned char>(byte)]; };
        if (byte_fallback_ && std::all_of(text.begin(), text.end(), [&](char byte) { return spelled(byte) >= 0; })) {
            for (const char byte : text) tokens.push_back({spelled(byte), begin, past});
            return;
        }
        tokens.push_back({unknown_id(), begin, past});
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

    std::vector<double> scores_;  ///< by id
    bool byte_fallback_;
    std::string where_;
    std::optional<std::int32_t> unknown_;
    double unknown_score_ = 0;
    PieceTrie trie_;
    std::array<std::int32_t, 256> fallback_{};  ///< "<0x41>" and so on
    std::uint64_t number_ = 0;                  ///< tells this model's words in a cache from another's
};

}  // namespace

std::unique_ptr<Model> make_unigram(const JsonView& description) {
    return std::make_unique<Unigram>(description);
}

}  // namespace headscope::tokenizer
