// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <vector>

#include "core/base/progress.h"
#include "core/tokenizer/models/model.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

std::int32_t known(std::int32_t id, const std::string& where, const std::string& piece) {
    if (id < 0)
        throw Error(ErrorCode::mismatch, where, "expected an unk_token of the vocabulary",
                    "found \"" + escaped(piece, 60) + "\"");
    return id;
}

/// BERT's model: the longest piece that fits, again and again (Wu et al. 2016; Devlin et al. 2019).
class WordPiece final : public Model {
public:
    explicit WordPiece(const JsonView& description)
        : Model(description.at("vocab")),
          unknown_(description.string_or("unk_token", "[UNK]")),
          prefix_(description.string_or("continuing_subword_prefix", "##")),
          most_characters_(
              static_cast<std::size_t>(description.integer_or("max_input_chars_per_word", 100, {0, 1 << 30}))),
          where_(description.where()) {
        for (const Vocabulary::Entry& entry : vocabulary().entries()) {
            longest_ = std::max(longest_, entry.piece.size());
        }
    }

    void tokenize(const Word& word, TokenQueue& tokens) const override {
        static thread_local std::vector<Token> found;
        constexpr std::size_t long_word = 1 << 14;
        bool fits = count_utf8(word.text) <= most_characters_;
        if (fits && word.text.size() <= long_word) {
            found.clear();
            fits = each_piece(word, [&](const Token& token) { found.push_back(token); });
            for (std::size_t i = 0; fits && i < found.size(); ++i) tokens.add(found[i]);
        } else if (fits) {
            // Only the end shows whether all of it fits: a long word is cut twice.
            fits = each_piece(word, [](const Token&) {});
            if (fits) {
                each_piece(word, [&](const Token& token) {
                    tokens.add(token);
                    tokens.hand_on_some();
                });
            }
        }
        if (!fits) {
            tokens.add({known(vocabulary().id(unknown_), where_, unknown_), word.begin,
                        word.begin + static_cast<std::uint32_t>(word.text.size())});
        }
    }

private:
    // Bytes of candidates that may be looked up for a word: more than real vocabularies need. Where words
    // may have any length, a vocabulary of huge pieces could make them cost a square of that.
    static std::uint64_t most_looked_up(std::size_t word) { return (1 << 20) + std::uint64_t{256} * word; }

    // Calls take for each piece of the word; false where the rest has none.
    template <class Take>
    bool each_piece(const Word& word, const Take& take) const {
        std::string candidate;
        std::uint64_t looked_up = 0;
        for (std::size_t begin = 0; begin < word.text.size();) {
            const std::string_view prefix = begin > 0 ? std::string_view(prefix_) : std::string_view();
            std::size_t end = std::min(word.text.size(), begin + longest_);
            while (end > begin && end < word.text.size() && is_continuation(word.text[end])) --end;
            std::int32_t id = -1;
            for (; end > begin; end = previous_utf8(word.text, end)) {
                candidate.assign(prefix).append(word.text.substr(begin, end - begin));
                id = vocabulary().id(candidate);
                looked_up += candidate.size();
                if (id >= 0) break;
            }
            if (id < 0) return false;
            if (looked_up > most_looked_up(word.text.size())) {
                throw Error(ErrorCode::limit, where_, "expected shorter pieces, or a lower max_input_chars_per_word",
                            "found a word of " + std::to_string(word.text.size()) + " bytes that costs too much");
            }
            if (word.cancellation != nullptr) word.cancellation->check();
            take(Token{id, word.begin + static_cast<std::uint32_t>(begin),
                       word.begin + static_cast<std::uint32_t>(end)});
            begin = end;
        }
        return true;
    }

    std::string unknown_;
    std::string prefix_;
    std::size_t most_characters_;
    std::size_t longest_ = 0;  ///< bytes of the longest piece: no longer candidate is worth a look
    std::string where_;
};

/// Whole words only.
class WordLevel final : public Model {
public:
    explicit WordLevel(const JsonView& description)
        : Model(description.at("vocab")),
          unknown_(description.string_or("unk_token", "<unk>")),
          where_(description.where()) {}

    void tokenize(const Word& word, TokenQueue& tokens) const override {
        std::int32_t id = vocabulary().id(word.text);
        if (id < 0) id = known(vocabulary().id(unknown_), where_, unknown_);
        tokens.add({id, word.begin, word.begin + static_cast<std::uint32_t>(word.text.size())});
    }

private:
    std::string unknown_;
    std::string where_;
};

}  // namespace

std::unique_ptr<Model> make_word_piece(const JsonView& description) {
    return std::make_unique<WordPiece>(description);
}
std::unique_ptr<Model> make_word_level(const JsonView& description) {
    return std::make_unique<WordLevel>(description);
}

}  // namespace headscope::tokenizer
