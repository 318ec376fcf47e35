// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/pipeline.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "core/base/process/cancellation_scope.h"
#include "core/base/progress.h"
#include "core/base/text/text.h"
#include "core/tokenizer/byte_level.h"
#include "core/tokenizer/unicode/text_check.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

constexpr std::size_t words_per_check = 1024;

class NoTokens final : public TokenSink {
public:
    void add(const FoundToken&) override {}
};

}  // namespace

Pipeline::Pipeline(PipelineParts parts, std::shared_ptr<const Tokenizer> target)
    : parts_(std::move(parts)), target_(std::move(target)) {
    const Layout text{{LayoutItem{}}};
    layout_ = arranged(text, true);
    plain_layout_ = arranged(text, false);
    for (const Vocabulary::Entry& entry : parts_.model->vocabulary().entries()) {
        const AddedToken* added = parts_.added.find(entry.id);
        if (added != nullptr && added->normalized != entry.piece) shadowed_.insert(entry.id);
    }
}

// The items of all groups, one after the other.
std::vector<LayoutItem> Pipeline::arranged(Layout layout, bool special) const {
    if (parts_.post_processor) parts_.post_processor->arrange(layout, special);
    std::vector<LayoutItem> items;
    for (auto& group : layout) {
        for (LayoutItem& item : group) {
            if (!parts_.types) item.type = 0;
            items.push_back(std::move(item));
        }
    }
    return items;
}

std::vector<LayoutItem> Pipeline::pair_layout(bool special) const {
    Layout pair(2, {LayoutItem{}});
    pair[1][0].type = 1;
    pair[1][0].text = 1;
    return arranged(std::move(pair), special);
}

std::vector<FramePart> Pipeline::frame(bool pair) const {
    std::vector<FramePart> parts;
    for (const LayoutItem& item : pair ? pair_layout(true) : layout_) {
        FramePart& part = parts.emplace_back();
        if (item.token) part.token = item.token->id;
        part.type = item.type;
        part.text = static_cast<std::uint8_t>(item.text);
    }
    return parts;
}

// Added tokens in the raw text; the text between them normalised; more added tokens in that; the rest split.
Pieces Pipeline::cut(std::string_view text, const Cancellation* cancellation) const {
    Pieces pieces(text.size(), cancellation);
    parts_.added.each_raw(text, [&](const AddedTokens::Stretch& raw) {
        if (cancellation != nullptr) cancellation->check();
        AlignedText stretch(text.substr(raw.begin, raw.end - raw.begin), raw.begin);
        if (raw.id != no_id) {
            pieces.add(std::move(stretch), raw.id);
            return;
        }
        if (parts_.normalizer) parts_.normalizer->apply(stretch);
        const std::size_t size = stretch.size();
        bool whole = false;
        parts_.added.each_normalized(stretch.text(), [&](const AddedTokens::Stretch& part) {
            whole = part.id == no_id && part.end - part.begin == size;
            if (!whole) pieces.add(stretch.slice(part.begin, part.end), part.id);
        });
        if (whole) pieces.add(std::move(stretch));
    });
    if (parts_.pre_tokenizer) parts_.pre_tokenizer->apply(pieces);
    return pieces;
}

// Gives tokens of the pieces to a sink: with their place in the original text, adjusted, and how they read there.
class Pipeline::Writer {
public:
    Writer(const Pipeline& pipeline, TokenSink& sink, std::string_view text, const Pieces& pieces,
           const LayoutItem& item)
        : pipeline_(pipeline),
          model_(*pipeline.parts_.model),
          post_processor_(pipeline.parts_.post_processor.get()),
          sink_(sink),
          text_(text),
          pieces_(pieces),
          spans_(pieces.text()),
          item_(item),
          unknown_(model_.unknown_shown_as_text()),
          adjusts_(post_processor_ != nullptr && post_processor_->adjusts()),
          any_shown_as_text_(unknown_ != no_id || !pipeline.shadowed_.empty()) {}

    void write(std::span<const Token> tokens) {
        for (const Token& token : tokens) {
            std::optional<std::string_view> found;
            if (any_shown_as_text_) found = shown_as_text(token);
            write(token, found);
        }
    }
    void write_added(const Piece& piece) { write({piece.id, piece.begin, piece.end}, pieces_.view(piece)); }

private:
    // A token that may not read as its id does.
    std::optional<std::string_view> shown_as_text(const Token& token) const {
        if (token.id == unknown_) return pieces_.view({token.begin, token.end});
        if (pipeline_.shadowed_.contains(token.id)) return model_.vocabulary().piece(token.id);
        return std::nullopt;
    }

    void write(const Token& token, std::optional<std::string_view> found) {
        const Span span = spans_.of(token.begin, token.end);
        FoundToken out{
            token.id, span.begin, span.end, false, std::nullopt, item_.type, static_cast<std::uint8_t>(item_.text + 1)};
        if (adjusts_) {
            TextToken own{text_,     found ? *found : model_.vocabulary().piece(token.id),
                          is_first_, item_.first_until,
                          out.begin, out.end};
            post_processor_->adjust(own);
            out.begin = own.begin;
            out.end = own.end;
        }
        is_first_ = false;
        if (found && *found != pipeline_.piece(token.id)) out.respelled = found;
        sink_.add(out);
    }

    const Pipeline& pipeline_;
    const Model& model_;
    const PostProcessor* post_processor_;
    TokenSink& sink_;
    std::string_view text_;
    const Pieces& pieces_;
    SpanReader spans_;
    const LayoutItem& item_;
    std::int32_t unknown_;
    bool adjusts_;
    bool any_shown_as_text_;
    bool is_first_ = true;
};

void Pipeline::encode_into(TokenSink& sink, std::string_view text, bool add_special_tokens,
                           const Cancellation* cancellation) const {
    encode(sink, {&text, 1}, add_special_tokens ? layout_ : plain_layout_, cancellation);
}

void Pipeline::encode_pair_into(TokenSink& sink, std::string_view first, std::string_view second,
                                bool add_special_tokens, const Cancellation* cancellation) const {
    const std::string_view texts[] = {first, second};
    encode(sink, texts, pair_layout(add_special_tokens), cancellation);
}

void Pipeline::encode(TokenSink& sink, std::span<const std::string_view> texts, std::span<const LayoutItem> layout,
                      const Cancellation* cancellation) const {
    std::optional<CancellationScope> scope;  // for what takes no flag: normalisers, searches
    if (cancellation != nullptr) scope.emplace(*cancellation);
    std::vector<Pieces> cut_texts;
    for (const std::string_view text : texts) {
        check_text(text);
        cut_texts.push_back(cut(text, cancellation));
        Pieces& pieces = cut_texts.back();
        if (pieces.stands_for_bytes() && !parts_.model->works_on_bytes()) pieces.spell_bytes();
    }
    const auto write_text = [&](TokenSink& into, const LayoutItem& item) {
        const Pieces& pieces = cut_texts[item.text];
        Writer writer(*this, into, texts[item.text], pieces, item);
        TokenQueue tokens([&writer](std::span<const Token> some) { writer.write(some); });
        std::size_t words = 0;
        pieces.list().each([&](const Piece& piece) {
            if (cancellation != nullptr && ++words % words_per_check == 0) cancellation->check();
            if (piece.id != no_id) {
                tokens.hand_on();
                writer.write_added(piece);
                return;
            }
            parts_.model->tokenize({pieces.view(piece), piece.begin, pieces.stands_for_bytes(), cancellation}, tokens);
            tokens.hand_on_some();
        });
        tokens.hand_on();
    };
    for (const LayoutItem& item : layout) {
        if (item.token)
            insert(sink, item);
        else
            write_text(sink, item);
    }
    NoTokens none;  // a text that the model refuses is refused though a template leaves it out
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const auto used = [i](const LayoutItem& item) { return !item.token && item.text == i; };
        if (std::any_of(layout.begin(), layout.end(), used)) continue;
        LayoutItem item;
        item.text = i;
        item.first_until = 0;
        write_text(none, item);
    }
}

// Inserts tokens of the post-processor.
void Pipeline::insert(TokenSink& sink, const LayoutItem& item) const {
    const InsertedToken& token = *item.token;
    FoundToken out{token.id, 0, 0, item.special, std::nullopt, item.type, 0};
    if (piece(token.id) != token.name) out.respelled = token.name;
    sink.add(out);
}

std::string Pipeline::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
    std::vector<std::string> pieces;
    pieces.reserve(ids.size());
    for (const std::int32_t id : ids) {
        const AddedToken* added = parts_.added.find(id);
        if (added == nullptr && !parts_.model->vocabulary().has(id)) continue;
        std::string text = piece(id);
        if (!skip_special_tokens || !parts_.added.is_special(text)) pieces.push_back(std::move(text));
    }
    if (parts_.decoder) parts_.decoder->apply(pieces);
    std::string text;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (i > 0 && !parts_.decoder) text += ' ';
        text += pieces[i];
    }
    return text;
}

std::string Pipeline::answer(std::span<const std::int32_t> ids) const {
    std::string text = decode(ids, true);
    if (!parts_.cleans_answers) return text;
    // As PreTrainedTokenizerBase.clean_up_tokenization, in its order.
    constexpr std::pair<std::string_view, std::string_view> all[] = {
        {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
        {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [from, to] : all) {
        std::string cleaned;
        std::size_t last = 0;
        for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, last)) {
            cleaned.append(text, last, at - last).append(to);
            last = at + from.size();
        }
        text = cleaned.append(text, last);
    }
    return text;
}

std::string Pipeline::piece(std::int32_t id) const {
    if (const AddedToken* added = parts_.added.find(id)) return added->normalized;
    return std::string(parts_.model->vocabulary().piece(id));
}

std::string Pipeline::surface(std::int32_t id) const {
    if (const AddedToken* added = parts_.added.find(id)) return added->content;
    const std::string spelled = piece(id);
    if (parts_.spells_byte_level) return spelled_bytes(spelled).value_or(spelled);
    if (parts_.model->spells_bytes()) {
        if (const auto byte = fallback_byte(spelled)) return std::string(1, static_cast<char>(*byte));
    }
    if (parts_.space.empty()) return spelled;
    std::string text;
    std::size_t last = 0;
    for (std::size_t at = find_text(spelled, parts_.space, 0); at != std::string::npos;
         at = find_text(spelled, parts_.space, last)) {
        text.append(spelled, last, at - last).append(" ");
        last = at + parts_.space.size();
    }
    return text.append(spelled, last);
}

std::int64_t Pipeline::vocabulary_size() const {
    return std::max(parts_.model->vocabulary().highest_id(), parts_.added.highest_id()) + 1;
}

std::optional<std::int32_t> Pipeline::id_of(std::string_view piece) const {
    if (const auto id = parts_.added.id_of(piece)) return id;
    const std::int32_t id = parts_.model->vocabulary().id(piece);
    return id < 0 ? std::nullopt : std::optional<std::int32_t>(id);
}

bool Pipeline::adds_first_token() const {
    return !layout_.empty() && layout_.front().token.has_value();
}

}  // namespace headscope::tokenizer
