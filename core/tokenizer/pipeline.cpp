// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/pipeline.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/base/cancellation_scope.h"
#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/base/text.h"
#include "core/tokenizer/byte_level.h"
#include "core/tokenizer/utf8.h"

namespace headscope::tokenizer {

namespace {

constexpr std::size_t longest_text = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t words_per_check = 1024;
constexpr std::size_t tokens_at_once = 4096;

// A token that may not read as its id does, an added token for one: where it stands, and how it reads there.
struct AddedPlace {
    std::size_t token = 0;
    std::string_view text;
};

// A quarter more at a time, not as much again: these are the largest lists of all.
template <class Entry>
void make_room(std::vector<Entry>& list, std::size_t more) {
    if (list.capacity() - list.size() >= more) return;
    list.reserve(std::max(list.size() + more, list.capacity() + list.capacity() / 4));
}

void check_text(std::string_view text) {
    if (text.size() > longest_text) {
        throw Error(ErrorCode::limit, "text", "expected less than 2 GiB",
                    "found " + std::to_string(text.size()) + " bytes");
    }
    const std::size_t invalid = find_invalid_utf8(text);
    if (invalid != std::string_view::npos) {
        throw Error(ErrorCode::format, "text", "expected UTF-8",
                    "found \"" + escaped(text.substr(invalid, 1)) + "\" at byte " + std::to_string(invalid));
    }
}

}  // namespace

Pipeline::Pipeline(PipelineParts parts) : parts_(std::move(parts)) {
    for (const Vocabulary::Entry& entry : parts_.model->vocabulary().entries()) {
        const AddedToken* added = parts_.added.find(entry.id);
        if (added != nullptr && added->normalized != entry.piece) shadowed_.insert(entry.id);
    }
}

// Added tokens in the raw text; the text between them normalised; more added tokens in that; the rest split.
Pieces Pipeline::cut(std::string_view text, const Cancellation* cancellation) const {
    Pieces pieces(cancellation);
    for (const AddedTokens::Stretch& raw : parts_.added.find_raw(text)) {
        if (cancellation != nullptr) cancellation->check();
        AlignedText stretch(text.substr(raw.begin, raw.end - raw.begin), raw.begin);
        if (raw.id != no_id) {
            pieces.add(stretch, raw.id);
            continue;
        }
        if (parts_.normalizer) parts_.normalizer->apply(stretch);
        const std::vector<AddedTokens::Stretch> found = parts_.added.find_normalized(stretch.text());
        if (found.size() == 1 && found.front().id == no_id) {
            pieces.add(stretch);
            continue;
        }
        for (const AddedTokens::Stretch& part : found) pieces.add(stretch.slice(part.begin, part.end), part.id);
    }
    if (parts_.pre_tokenizer) parts_.pre_tokenizer->apply(pieces);
    return pieces;
}

Encoding Pipeline::encode(std::string_view text, bool add_special_tokens, const Cancellation* cancellation) const {
    check_text(text);
    std::optional<CancellationScope> scope;  // for what takes no flag: normalisers, searches
    if (cancellation != nullptr) scope.emplace(*cancellation);
    Pieces pieces = cut(text, cancellation);
    const Model& model = *parts_.model;
    if (pieces.stands_for_bytes() && !model.works_on_bytes()) pieces.spell_bytes();

    Draft draft;
    draft.text = text;
    Encoding& encoding = draft.encoding;
    encoding.ids.reserve(pieces.list().size() + pieces.list().size() / 4 + 2);
    encoding.offsets.reserve(pieces.list().size() + pieces.list().size() / 4 + 2);
    std::vector<Token> tokens;  // of some words, not yet in the encoding
    std::vector<AddedPlace> added;
    const auto write = [&] {
        make_room(encoding.ids, tokens.size());
        make_room(encoding.offsets, tokens.size());
        for (const Token& token : tokens) {
            const Span span = pieces.text().span(token.begin, token.end);
            encoding.ids.push_back(token.id);
            encoding.offsets.push_back({span.begin, span.end});
        }
        tokens.clear();
    };
    const std::int32_t unknown = model.unknown_shown_as_text();
    std::size_t words = 0;
    for (const Piece& piece : pieces.list()) {
        if (cancellation != nullptr && ++words % words_per_check == 0) cancellation->check();
        if (tokens.size() >= tokens_at_once) write();
        if (piece.id != no_id) {
            added.push_back({encoding.ids.size() + tokens.size(), pieces.view(piece)});
            tokens.push_back({piece.id, piece.begin, piece.end});
        } else {
            const std::size_t first = tokens.size();
            model.tokenize({pieces.view(piece), piece.begin, pieces.stands_for_bytes(), cancellation}, tokens);
            if (unknown == no_id && shadowed_.empty()) continue;
            for (std::size_t i = first; i < tokens.size(); ++i) {
                if (tokens[i].id == unknown) {
                    added.push_back({encoding.ids.size() + i, pieces.view({tokens[i].begin, tokens[i].end})});
                } else if (shadowed_.contains(tokens[i].id)) {
                    added.push_back({encoding.ids.size() + i, model.vocabulary().piece(tokens[i].id)});
                }
            }
        }
    }
    write();
    std::vector<Token>().swap(tokens);
    draft.end = encoding.ids.size();
    encoding.special.assign(encoding.ids.size(), 0);
    for (const AddedPlace& place : added) {
        if (place.text == piece(encoding.ids[place.token])) continue;
        encoding.respelled.push_back({static_cast<std::int64_t>(place.token), std::string(place.text)});
    }
    draft.piece = [&](std::size_t i) {
        const auto place =
            std::lower_bound(added.begin(), added.end(), i,
                             [](const AddedPlace& entry, std::size_t token) { return entry.token < token; });
        return place != added.end() && place->token == i ? place->text
                                                         : model.vocabulary().piece(encoding.ids[draft.begin + i]);
    };
    draft.spelling = [this](std::int32_t id) { return piece(id); };
    if (parts_.post_processor) parts_.post_processor->apply(draft, add_special_tokens);
    return std::move(draft.encoding);
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
    return parts_.post_processor && parts_.post_processor->adds_first_token();
}

}  // namespace headscope::tokenizer
