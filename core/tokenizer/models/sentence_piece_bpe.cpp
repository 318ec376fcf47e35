// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <queue>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/tokenizer/models/model.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

constexpr std::string_view space = "\xE2\x96\x81";
constexpr std::size_t bytes_per_check = 1 << 16;
constexpr std::int32_t nobody = -1;

/// Byte pair encoding as sentencepiece has it (Sennrich et al., arXiv 1508.07909): of all neighbours that make a piece,
/// those of the highest score become one, the leftmost first. Pieces have ids of their own: "ids", {"piece": id}, in
/// which "unk_token" stands for those that are not there. Of a document that was made of files; no kind of
/// tokenizer.json. No piece holds a space but at its begin, so words are merged one by one.
class SentencePieceBpe final : public Model {
public:
    explicit SentencePieceBpe(const JsonView& description) : Model(Vocabulary(description.at("ids"))) {
        const JsonView unknown = description.at("unk_token");
        unknown_ = vocabulary().id(unknown.string());
        if (unknown_ < 0) unknown.refuse(ErrorCode::mismatch, "expected a piece of the vocabulary");
        const JsonView list = description.at("vocab").array();
        for (const nlohmann::json& entry : list.value()) {
            const auto& piece = entry.at(0).get_ref<const std::string&>();
            pieces_.add(piece, static_cast<std::int32_t>(scores_.size()));
            scores_.push_back(entry.at(1).get<float>());
            const std::int32_t id = vocabulary().id(piece);
            ids_.push_back(id < 0 ? unknown_ : id);
        }
    }

    std::int32_t unknown_shown_as_text() const override { return unknown_; }

    void tokenize(const Word& word, TokenQueue& tokens) const override {
        Unknown unknown{word, std::nullopt};
        std::size_t check = bytes_per_check;
        for (std::size_t begin = 0; begin < word.text.size();) {
            const std::size_t end = std::min(word.text.find(space, begin + 1), word.text.size());
            merge(word, begin, end, unknown, tokens);
            tokens.hand_on_some();
            begin = end;
            if (begin < check) continue;
            check = begin + bytes_per_check;
            if (word.cancellation) word.cancellation->check();
        }
        finish(unknown, word.text.size(), tokens);
    }

private:
    struct Symbol {
        std::size_t begin = 0, size = 0;  ///< size 0: has become part of the one before
        std::int32_t before = nobody, behind = nobody;
    };
    struct Pair {
        float score = 0;
        std::int32_t left = 0, right = 0;
        std::size_t size = 0;
        /// Comes later.
        bool operator<(const Pair& other) const {
            return score < other.score || (score == other.score && left > other.left);
        }
    };
    /// Characters in a row that no piece holds are one token.
    struct Unknown {
        const Word& word;
        std::optional<std::size_t> begin;
    };

    void merge(const Word& word, std::size_t begin, std::size_t end, Unknown& unknown, TokenQueue& tokens) const {
        std::vector<Symbol> symbols;
        for (std::size_t at = begin; at < end;) {
            const std::size_t length = utf8_length(word.text[at]);
            const auto number = static_cast<std::int32_t>(symbols.size());
            symbols.push_back({at, length, number - 1, at + length < end ? number + 1 : nobody});
            at += length;
        }
        const auto at = [&symbols](std::int32_t number) -> Symbol& {
            return symbols[static_cast<std::size_t>(number)];
        };
        std::priority_queue<Pair> queue;
        const auto consider = [&](std::int32_t left, std::int32_t right) {
            if (left == nobody || right == nobody) return;
            const std::size_t size = at(left).size + at(right).size;
            const std::int32_t piece = pieces_.find(word.text.substr(at(left).begin, size));
            if (piece >= 0) queue.push({scores_[static_cast<std::size_t>(piece)], left, right, size});
        };
        for (std::size_t i = 1; i < symbols.size(); ++i)
            consider(static_cast<std::int32_t>(i - 1), static_cast<std::int32_t>(i));
        while (!queue.empty()) {
            const Pair pair = queue.top();
            queue.pop();
            Symbol &left = at(pair.left), &right = at(pair.right);
            if (left.size == 0 || right.size == 0 || left.size + right.size != pair.size) continue;
            left.size = pair.size;
            left.behind = right.behind;
            right.size = 0;
            if (left.behind != nobody) at(left.behind).before = pair.left;
            consider(left.before, pair.left);
            consider(pair.left, left.behind);
        }
        for (const Symbol& symbol : symbols) {
            if (symbol.size == 0) continue;
            const std::int32_t piece = pieces_.find(word.text.substr(symbol.begin, symbol.size));
            if (piece < 0) {
                if (!unknown.begin) unknown.begin = symbol.begin;
                continue;
            }
            finish(unknown, symbol.begin, tokens);
            const std::uint32_t first = word.begin + static_cast<std::uint32_t>(symbol.begin);
            tokens.add({ids_[static_cast<std::size_t>(piece)], first, first + static_cast<std::uint32_t>(symbol.size)});
        }
    }

    void finish(Unknown& unknown, std::size_t end, TokenQueue& tokens) const {
        if (!unknown.begin) return;
        const std::size_t begin = *unknown.begin;
        unknown.begin.reset();
        const std::int32_t id = vocabulary().id(unknown.word.text.substr(begin, end - begin));
        const std::uint32_t origin = unknown.word.begin;
        tokens.add({id < 0 ? unknown_ : id, origin + static_cast<std::uint32_t>(begin),
                    origin + static_cast<std::uint32_t>(end)});
    }

    std::int32_t unknown_ = 0;
    StringTable pieces_;             ///< to their numbers
    std::vector<float> scores_;      ///< by number
    std::vector<std::int32_t> ids_;  ///< by number
};

}  // namespace

std::unique_ptr<Model> make_sentence_piece_bpe(const JsonView& description) {
    return std::make_unique<SentencePieceBpe>(description);
}

}  // namespace headscope::tokenizer
