// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/input.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/analysis/text_sources.h"
#include "core/base/io/input_file.h"
#include "core/base/json/json.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/load/generation_settings.h"
#include "core/tokenizer/hashed/word_hash.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::analysis {
namespace {

using store::SequenceTokens;

/// Tokens of all texts together that are kept: each takes some sixty bytes until it is analysed.
constexpr std::size_t most_tokens = std::size_t{1} << 22U;

/// A sequence together with which of its tokens the tokenizer inserted.
struct Tokenized {
    SequenceTokens tokens;
    std::vector<std::uint8_t> inserted;
};

/// Keeps the first `most` tokens of a text and counts the others: a text of megabytes may be a token a byte, and mostly
/// ends in the line that says how many tokens the model takes.
class FirstTokens final : public tokenizer::TokenSink {
public:
    /// `words`: a tokenizer whose ids do not determine its pieces, or null.
    FirstTokens(std::size_t most, const tokenizer::Tokenizer* words) : most_(most), words_(words) {}
    void add(const tokenizer::FoundToken& token) override {
        any_of_text = any_of_text || (!token.special && token.region == 1);
        any_of_second = any_of_second || token.region == 2;
        if (count++ >= most_) return;
        const std::int64_t shift = token.region == 2 ? second_begin : 0;
        put(kept.tokens.ids.size(), token.id, token.begin + shift, token.end + shift, token.special);
        if (words_ && token.respelled) kept.tokens.pieces.back() = *token.respelled;
        kept.tokens.types.push_back(token.type);
        if (is_pair()) kept.tokens.regions.push_back(token.region);
    }
    void put(std::size_t place, std::int32_t id, std::int64_t begin, std::int64_t end, bool special) {
        const auto at = static_cast<std::ptrdiff_t>(place);
        kept.tokens.ids.insert(kept.tokens.ids.begin() + at, id);
        kept.tokens.offsets.insert(kept.tokens.offsets.begin() + at, {begin, end});
        kept.inserted.insert(kept.inserted.begin() + at, special ? 1 : 0);
        if (words_) kept.tokens.pieces.insert(kept.tokens.pieces.begin() + at, words_->piece(id));
    }
    void put_first(std::int32_t id) {
        put(0, id, 0, 0, true);
        ++count;
        kept.tokens.types.insert(kept.tokens.types.begin(), 0);
        if (is_pair()) kept.tokens.regions.insert(kept.tokens.regions.begin(), 0);
    }
    void drop_first() {
        kept.tokens.ids.erase(kept.tokens.ids.begin());
        kept.tokens.offsets.erase(kept.tokens.offsets.begin());
        kept.inserted.erase(kept.inserted.begin());
        if (words_) kept.tokens.pieces.erase(kept.tokens.pieces.begin());
        --count;
        kept.tokens.types.erase(kept.tokens.types.begin());
        if (is_pair()) kept.tokens.regions.erase(kept.tokens.regions.begin());
    }

    Tokenized kept;
    std::size_t count = 0;  ///< of all
    bool any_of_text = false, any_of_second = false;
    std::int64_t second_begin = 0;  ///< of a pair: where the second text begins in the whole one; 0: no pair

private:
    bool is_pair() const { return second_begin > 0; }

    std::size_t most_;
    const tokenizer::Tokenizer* words_;
};

class InputReader {
public:
    InputReader(const InputOptions& options, const tokenizer::Tokenizer* tokenizer, const Cancellation* cancellation)
        : options_(options),
          tokenizer_(tokenizer),
          hash_(tokenizer ? tokenizer->word_hash() : nullptr),
          cancellation_(cancellation) {}

    Input run() {
        const bool texts = !options_.texts.empty() || !options_.files.empty() || !options_.examples.empty();
        if (!texts && options_.token_files.empty()) {
            throw Error(ErrorCode::usage, "input", "expected a text, a file, an example or a list of token ids",
                        "found none");
        }
        if (options_.length < 0 || (options_.windows && options_.length == 0)) {
            throw Error(ErrorCode::usage, "--windows", "expected a length of at least 1 beside it", "found none");
        }
        check_pairs();
        if (texts) prepare_texts();
        for (std::size_t i = 0; i < options_.texts.size(); ++i) {
            const std::string& text = options_.texts[i];
            const std::size_t invalid = find_invalid_utf8(text);
            if (invalid != std::string::npos) {
                throw Error(ErrorCode::format, "--text", "expected text in UTF-8",
                            "found no UTF-8 at byte " + std::to_string(invalid));
            }
            add_text(text, options_.texts.size() == 1 ? "--text" : "--text number " + std::to_string(i + 1));
        }
        for (const auto& file : options_.files) {
            if (file != "-") input_.paths.push_back(file);
            add_text(read_text_file(file, cancellation_), file == "-" ? "standard input" : shown(file));
        }
        for (const std::string& name : options_.examples) {
            const auto path = bundled_text_path(options_.resources, name);
            input_.paths.push_back(path);
            add_text(read_text_file(path, cancellation_), shown(path));
        }
        for (const auto& file : options_.token_files) {
            input_.paths.push_back(file);
            if (hash_)
                for (auto& tokens : read_word_file(file, *hash_)) add_words(std::move(tokens));
            else
                for (auto& ids : read_token_file(file, vocabulary())) add_ids(std::move(ids));
        }
        return std::move(input_);
    }

private:
    std::int64_t vocabulary() const {
        if (options_.vocabulary > 0 || tokenizer_ == nullptr) return options_.vocabulary;
        return tokenizer_->vocabulary_size();
    }

    void check_pairs() const {
        const auto& pairs = options_.pairs;
        if (pairs.empty()) return;
        const std::size_t texts = options_.texts.size() + options_.files.size() + options_.examples.size();
        if (pairs.size() != 1 && pairs.size() != texts) {
            throw Error(ErrorCode::usage, "--pair",
                        "expected one second text, or one for each of " + std::to_string(texts) + " texts",
                        "found " + std::to_string(pairs.size()));
        }
        if (texts == 0) throw Error(ErrorCode::usage, "--pair", "expected a text that it is a pair with", "found none");
        if (options_.chat)
            throw Error(ErrorCode::usage, "--pair", "expected no --chat beside it, for a message is one text",
                        "found both");
        for (const std::string& text : pairs) {
            if (const std::size_t invalid = find_invalid_utf8(text); invalid != std::string::npos) {
                throw Error(ErrorCode::format, "--pair", "expected text in UTF-8",
                            "found no UTF-8 at byte " + std::to_string(invalid));
            }
        }
    }

    /// Decides once what happens to the first token of every text.
    void prepare_texts() {
        if (tokenizer_ == nullptr) {
            throw Error(ErrorCode::usage, "input",
                        "expected a tokenizer.json beside the model, or token ids (--tokens)", "found neither");
        }
        if (options_.chat) {
            if (options_.first_token != FirstToken::automatic)
                throw Error(ErrorCode::usage, "--bos", "expected auto beside --chat, for the template has its own",
                            options_.first_token == FirstToken::yes ? "found yes" : "found no");
            input_.first_token = "as the chat template does";
            return;
        }
        const bool adds = tokenizer_->adds_first_token();
        switch (options_.first_token) {
            case FirstToken::automatic:
                input_.first_token = adds ? "added by the tokenizer" : "none, as the tokenizer does";
                break;
            case FirstToken::no:
                input_.first_token = adds ? "left out" : "none";
                break;
            case FirstToken::yes:
                input_.first_token = adds ? "added by the tokenizer" : "added";
                if (!adds && !options_.first_token_id) {
                    throw Error(ErrorCode::usage, "--bos yes",
                                "expected a model that names its first token (bos_token_id)", "found none");
                }
                break;
        }
    }

    /// Makes the text what is analysed, and takes its tokens. `second`: of a pair, or null.
    void encode(std::string& text, const std::string* second, FirstTokens& tokens) const {
        if (options_.chat) {
            const tokenizer::ChatMessage message{"user", std::move(text)};
            text = tokenizer::apply_chat_template(*options_.chat, {&message, 1}, options_.chat_options);
            tokenizer_->encode_into(tokens, text, false, cancellation_);
            return;
        }
        if (second != nullptr) {
            tokens.second_begin = static_cast<std::int64_t>(text.size()) + 1;
            tokenizer_->encode_pair_into(tokens, text, *second, true, cancellation_);
            text += '\n' + *second;
        } else {
            tokenizer_->encode_into(tokens, text, true, cancellation_);
        }
        const bool adds = tokenizer_->adds_first_token();
        if (options_.first_token == FirstToken::no && adds && tokens.count > 0 && tokens.kept.inserted.front() != 0) {
            tokens.drop_first();
        }
        if (options_.first_token == FirstToken::yes && !adds) tokens.put_first(*options_.first_token_id);
    }

    void add_text(std::string text, const std::string& where) {
        const auto refuse = [&](const char* found) {
            throw Error(ErrorCode::usage, where, "expected a text of at least one token", found);
        };
        if (text.empty()) refuse("found an empty text");
        const std::size_t room = most_tokens - std::min(kept_, most_tokens);
        // Reads two more than needed: the first may be removed, and a surplus shows that the text is cut.
        const std::size_t wanted =
            options_.length > 0 && !options_.windows ? static_cast<std::size_t>(options_.length) + 2 : most_tokens + 1;
        FirstTokens tokens(std::min(wanted, room + 1), hash_ ? tokenizer_ : nullptr);
        const auto& pairs = options_.pairs;
        const std::string* second = pairs.empty() ? nullptr : &pairs[pairs.size() == 1 ? 0 : texts_];
        ++texts_;
        encode(text, second, tokens);
        if (!tokens.any_of_text) refuse("found one that the tokenizer drops whole");
        if (second != nullptr && !tokens.any_of_second)
            throw Error(ErrorCode::usage, "--pair", "expected a text of at least one token", "found none");
        Tokenized& whole = tokens.kept;
        whole.tokens.text = std::move(text);
        auto& types = whole.tokens.types;
        const bool typed = std::any_of(types.begin(), types.end(), [](std::int32_t type) { return type != 0; });
        if (second == nullptr && !typed) types.clear();
        for (std::size_t i = 0; hash_ && i < whole.tokens.ids.size(); ++i) {
            const bool special = whole.tokens.ids[i] < tokenizer::kSpecialTokens;
            whole.tokens.hashes.push_back(special ? "" : hash_->hex(whole.tokens.pieces[i]));
        }
        const std::int64_t limit = vocabulary();
        for (const std::int32_t id : whole.tokens.ids) {
            if (limit == 0 || id < limit) continue;
            throw Error(ErrorCode::mismatch, where,
                        "expected a tokenizer whose ids lie below the model's " + std::to_string(limit),
                        "found " + std::to_string(id));
        }
        // Refuse texts beyond the model's limit first.
        const std::size_t used =
            options_.length > 0 ? std::min(tokens.count, static_cast<std::size_t>(options_.length)) : tokens.count;
        if (options_.check_length) options_.check_length(static_cast<std::int64_t>(used));
        if ((options_.windows ? tokens.count : used) > room) {
            throw Error(ErrorCode::limit, where, "expected at most " + std::to_string(most_tokens) + " tokens in all",
                        "found " + std::to_string(kept_ + (options_.windows ? tokens.count : used)));
        }
        cut(std::move(whole));
    }

    /// Ids without a text: the text is what the pieces read as, if there is a tokenizer.
    void add_ids(std::vector<std::int32_t> ids) {
        Tokenized whole;
        for (const std::int32_t id : ids) {
            const auto begin = static_cast<std::int64_t>(whole.tokens.text.size());
            if (known(id)) whole.tokens.text += piece(id);
            whole.tokens.offsets.push_back({begin, static_cast<std::int64_t>(whole.tokens.text.size())});
        }
        // Pieces may be parts of characters that do not join up: such a text would shift the offsets when it is stored.
        if (find_invalid_utf8(whole.tokens.text) != std::string::npos) {
            whole.tokens.text.clear();
            for (auto& offset : whole.tokens.offsets) offset = {0, 0};
        }
        whole.inserted.assign(ids.size(), 0);
        whole.tokens.ids = std::move(ids);
        cut(std::move(whole));
    }

    void add_words(SequenceTokens tokens) {
        Tokenized whole;
        whole.inserted.assign(tokens.ids.size(), 0);
        whole.tokens = std::move(tokens);
        cut(std::move(whole));
    }

    bool known(std::int32_t id) const { return tokenizer_ != nullptr && id < tokenizer_->vocabulary_size(); }
    std::string piece(std::int32_t id) const { return known(id) ? tokenizer_->surface(id) : std::to_string(id); }

    void cut(Tokenized whole) {
        if (options_.repeat_token) repeat_first(whole);
        const std::size_t size = whole.tokens.ids.size();
        const std::size_t window =
            options_.length > 0 ? std::min(size, static_cast<std::size_t>(options_.length)) : size;
        if (options_.check_length) options_.check_length(static_cast<std::int64_t>(window));
        kept_ += options_.windows ? size : window;
        for (std::size_t begin = 0; begin < (options_.windows ? size : 1); begin += window) {
            if (cancellation_) cancellation_->check();
            store::SequenceTokens& tokens = input_.sequences.emplace_back(
                window == size ? std::move(whole.tokens) : part(whole.tokens, begin, std::min(begin + window, size)));
            if (tokens.pieces.empty())
                for (const std::int32_t id : tokens.ids) tokens.pieces.push_back(piece(id));
        }
    }

    static void repeat_first(Tokenized& whole) {
        SequenceTokens& tokens = whole.tokens;
        const auto first = static_cast<std::size_t>(std::find(whole.inserted.begin(), whole.inserted.end(), 0) -
                                                    whole.inserted.begin());
        for (std::size_t i = first; i < tokens.ids.size(); ++i) {
            if (whole.inserted[i] != 0) continue;
            tokens.ids[i] = tokens.ids[first];
            tokens.offsets[i] = tokens.offsets[first];
            if (!tokens.pieces.empty()) tokens.pieces[i] = tokens.pieces[first];
            if (!tokens.hashes.empty()) tokens.hashes[i] = tokens.hashes[first];
        }
    }

    /// Tokens [begin, end) with the stretch of the text that they cover; pieces come later, for what is kept only, but
    /// those of words.
    static SequenceTokens part(const SequenceTokens& whole, std::size_t begin, std::size_t end) {
        const auto from = static_cast<std::ptrdiff_t>(begin), to = static_cast<std::ptrdiff_t>(end);
        SequenceTokens tokens;
        tokens.ids.assign(whole.ids.begin() + from, whole.ids.begin() + to);
        tokens.offsets.assign(whole.offsets.begin() + from, whole.offsets.begin() + to);
        if (!whole.pieces.empty()) tokens.pieces.assign(whole.pieces.begin() + from, whole.pieces.begin() + to);
        if (!whole.hashes.empty()) tokens.hashes.assign(whole.hashes.begin() + from, whole.hashes.begin() + to);
        if (!whole.types.empty()) tokens.types.assign(whole.types.begin() + from, whole.types.begin() + to);
        if (!whole.regions.empty()) tokens.regions.assign(whole.regions.begin() + from, whole.regions.begin() + to);
        std::int64_t first = static_cast<std::int64_t>(whole.text.size()), last = 0;
        for (const auto& [a, b] : tokens.offsets) {
            if (a == b) continue;  // inserted tokens cover nothing
            first = std::min(first, a);
            last = std::max(last, b);
        }
        if (first >= last) first = last = 0;
        // A window may begin or end inside a character, whose bytes are several tokens: take the whole character.
        const auto continues = [&](std::int64_t at) {
            return at < static_cast<std::int64_t>(whole.text.size()) &&
                   (static_cast<unsigned char>(whole.text[static_cast<std::size_t>(at)]) & 0xC0U) == 0x80U;
        };
        while (first > 0 && continues(first)) --first;
        while (continues(last)) ++last;
        tokens.text = whole.text.substr(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
        for (auto& offset : tokens.offsets) {
            offset = offset[0] == offset[1] ? std::array<std::int64_t, 2>{0, 0}
                                            : std::array<std::int64_t, 2>{offset[0] - first, offset[1] - first};
        }
        return tokens;
    }

    const InputOptions& options_;
    const tokenizer::Tokenizer* tokenizer_;
    const tokenizer::WordHash* hash_;  ///< of a model that hashes words, or null
    const Cancellation* cancellation_;
    Input input_;
    std::size_t kept_ = 0;   ///< tokens of all sequences
    std::size_t texts_ = 0;  ///< texts that were taken
};

/// A token that tokenizer_config.json names: a text, or an object with its content.
std::optional<std::int32_t> named_token(const checkpoint::Checkpoint& checkpoint, const tokenizer::Tokenizer& tokenizer,
                                        const char* key) {
    const nlohmann::json document = checkpoint.tokenizer_settings();
    const JsonView config(document, "tokenizer_config.json");
    if (!config.is_object()) return std::nullopt;
    const auto token = config.find(key);
    if (!token) return std::nullopt;
    if (token->is_string()) return tokenizer.id_of(token->string());
    if (token->is_object()) return tokenizer.id_of(token->string_or("content", ""));
    return std::nullopt;
}

}  // namespace

Input read_input(const InputOptions& options, const tokenizer::Tokenizer* tokenizer, const Cancellation* cancellation) {
    return InputReader(options, tokenizer, cancellation).run();
}

std::optional<std::int32_t> beginning_token(const checkpoint::Checkpoint& checkpoint,
                                            const tokenizer::Tokenizer& tokenizer) {
    if (checkpoint.has_config()) {
        const JsonView config(checkpoint.config(), "config.json");
        const auto id = config.find("bos_token_id");
        // Newer files list several.
        if (id && !id->is_array()) {
            return static_cast<std::int32_t>(id->integer({0, tokenizer.vocabulary_size() - 1}));
        }
        if (id && id->size() > 0) {
            return static_cast<std::int32_t>(id->at(std::size_t{0}).integer({0, tokenizer.vocabulary_size() - 1}));
        }
    }
    return named_token(checkpoint, tokenizer, "bos_token");
}

std::optional<std::int32_t> ending_token(const checkpoint::Checkpoint& checkpoint,
                                         const tokenizer::Tokenizer& tokenizer) {
    return named_token(checkpoint, tokenizer, "eos_token");
}

std::vector<std::int64_t> ending_tokens(const checkpoint::Checkpoint& checkpoint,
                                        const tokenizer::Tokenizer* tokenizer) {
    std::vector<std::int64_t> ends = model::end_tokens(checkpoint);
    if (ends.empty() && tokenizer != nullptr)
        if (const auto last = ending_token(checkpoint, *tokenizer)) ends.push_back(*last);
    return ends;
}

}  // namespace headscope::analysis
