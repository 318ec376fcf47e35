// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/hashed/word_tokenizer.h"

#include <unordered_map>

#include "core/base/progress.h"
#include "core/tokenizer/hashed/split.h"
#include "core/tokenizer/unicode/text_check.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {
namespace {

constexpr std::int32_t kBegin = 0, kEnd = 2;  // <s> and </s>

void add_special(TokenSink& sink, std::int32_t id) {
    sink.add({id, 0, 0, true, std::nullopt, 0, 0});
}

/// Ids of words; those of lsh's rows, each of which takes a fraction of a millisecond, are kept while a text is read.
class Ids {
public:
    explicit Ids(const WordHash& hash)
        : hash_(hash), keeps_(hash.settings().kind == EmbeddingKind::emb && hash.ngrams() != nullptr) {}
    std::int32_t of(std::string_view word) {
        if (!keeps_) return hash_.id(word);
        constexpr std::size_t most_kept = 1 << 16;
        if (known_.size() == most_kept) known_.clear();
        const auto [entry, is_new] = known_.try_emplace(std::string(word), 0);
        if (is_new) entry->second = hash_.id(word);
        return entry->second;
    }

private:
    const WordHash& hash_;
    bool keeps_;
    std::unordered_map<std::string, std::int32_t> known_;
};

/// Hashes the pieces of another tokenizer, as they are spelt.
class PieceSink final : public TokenSink {
public:
    PieceSink(TokenSink& sink, const Tokenizer& pieces, const WordHash& hash, std::uint8_t region)
        : sink_(sink), pieces_(pieces), ids_(hash), region_(region) {}
    void add(const FoundToken& token) override {
        const std::string piece = token.respelled ? std::string(*token.respelled) : pieces_.piece(token.id);
        sink_.add({ids_.of(piece), token.begin, token.end, false, piece, 0, region_});
    }

private:
    TokenSink& sink_;
    const Tokenizer& pieces_;
    Ids ids_;
    std::uint8_t region_;
};

}  // namespace

WordTokenizer::WordTokenizer(std::shared_ptr<const WordHash> hash, std::shared_ptr<const Tokenizer> pieces)
    : hash_(std::move(hash)), pieces_(std::move(pieces)) {}

void WordTokenizer::add_words(TokenSink& sink, std::string_view text, std::uint8_t region,
                              const Cancellation* cancellation) const {
    if (pieces_) {
        PieceSink through(sink, *pieces_, *hash_, region);
        return pieces_->encode_into(through, text, false, cancellation);
    }
    if (hash_->settings().kind == EmbeddingKind::characters) {
        check_text(text);
        for (std::uint32_t at = 0; at < text.size();) {
            constexpr std::uint32_t bytes_per_check = 1 << 12;
            if (cancellation != nullptr && at % bytes_per_check == 0) cancellation->check();
            const auto length = static_cast<std::uint32_t>(utf8_length(text[at]));
            sink.add({kSpecialTokens, at, at + length, false, text.substr(at, length), 0, region});
            at += length;
        }
        return;
    }
    Ids ids(*hash_);
    split_words(
        text,
        [&](const SplitWord& word) {
            sink.add({ids.of(word.piece), word.begin, word.end, false, word.piece, 0, region});
        },
        cancellation);
}

void WordTokenizer::encode_into(TokenSink& sink, std::string_view text, bool add_special_tokens,
                                const Cancellation* cancellation) const {
    if (add_special_tokens) add_special(sink, kBegin);
    add_words(sink, text, 1, cancellation);
    if (add_special_tokens) add_special(sink, kEnd);
}

void WordTokenizer::encode_pair_into(TokenSink& sink, std::string_view first, std::string_view second,
                                     bool add_special_tokens, const Cancellation* cancellation) const {
    encode_into(sink, first, add_special_tokens, cancellation);
    if (add_special_tokens) add_special(sink, kEnd);
    add_words(sink, second, 2, cancellation);
    if (add_special_tokens) add_special(sink, kEnd);
}

std::vector<FramePart> WordTokenizer::frame(bool pair) const {
    const FramePart begin{kBegin, 0, 0}, end{kEnd, 0, 0}, first{{}, 0, 0}, second{{}, 0, 1};
    if (pair) return {begin, first, end, end, second, end};
    return {begin, first, end};
}

std::string WordTokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
    std::string text;
    if (skip_special_tokens) return text;  // other ids do not determine a text
    for (const std::int32_t id : ids) text += piece(id);
    return text;
}

std::string WordTokenizer::piece(std::int32_t id) const {
    return id < 0 || id >= kSpecialTokens ? std::string() : std::string(special_token(id));
}

std::optional<std::int32_t> WordTokenizer::id_of(std::string_view piece) const {
    for (std::int32_t id = 0; id < kSpecialTokens; ++id)
        if (special_token(id) == piece) return id;
    return std::nullopt;
}

}  // namespace headscope::tokenizer
