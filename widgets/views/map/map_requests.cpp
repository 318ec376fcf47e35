// SPDX-License-Identifier: GPL-3.0-or-later
// Requests for the shown map, its labels and types.
#include "widgets/views/map/map.h"

#include <cmath>
#include <utility>

#include "core/figures/head_weights.h"
#include "core/figures/recipe.h"
#include "core/figures/token_types.h"
#include "widgets/plots/map/map_plot.h"
#include "widgets/plots/map/map_profiles.h"

namespace headscope::widgets {

void MapView::ask_labels(Shown& next) {
    if (!next.sequence) return;
    Study& study = *this->study();
    const Site& site = study.sites()[static_cast<std::size_t>(next.site)];
    if (next.look.words) {
        next.query_words = study.words(site.query_stream, *next.sequence).value;
        next.key_words = study.words(site.key_stream, *next.sequence).value;
        const auto labels = [](const std::shared_ptr<const StudyWords>& words) {
            return words ? std::shared_ptr<const std::vector<QString>>(words, &words->labels) : nullptr;
        };
        next.query_labels = labels(next.query_words);
        next.key_labels = labels(next.key_words);
        return;
    }
    next.query_labels = study.labels(site.query_stream, *next.sequence).value;
    next.key_labels = study.labels(site.key_stream, *next.sequence).value;
}

void MapView::ask_types(Shown& next) {
    if (!next.sequence || figures::of_layer(next.look.values)) return;
    const auto typed = figures::typed_head(study()->header(), next.site, next.head);
    if (typed && study()->site_done(*next.sequence, typed->site))
        next.types = study()->token_types(*next.sequence, typed->site).value;
}

std::vector<std::int32_t> MapView::key_types(const Shown& next) const {
    const auto& header = study()->header();
    const auto typed = next.types ? figures::typed_head(header, next.site, next.head) : std::nullopt;
    if (!typed) return {};
    const auto tokens = std::ssize(study()->key_tokens(*next.sequence, next.site).ids);
    const auto types = figures::types_of_tokens(*next.types, typed->head, header.type_chunk, tokens);
    if (!next.key_words) return types;
    std::vector<std::int32_t> of_words;  // of each word's first piece
    for (std::int64_t word = 0; word < next.key_words->size(); ++word)
        of_words.push_back(types.at(static_cast<std::size_t>(next.key_words->first_piece(word))));
    return of_words;
}

bool MapView::ask_computed(Shown& next) {
    Study& study = *this->study();
    replaced_.clear();
    if (!next.look.computed()) return true;
    const MapLook::Values values = std::exchange(next.look.values, MapLook::Values::weights);
    if (figures::of_norms(values) && !study.header().record.norms) {
        replaced_ = tr("Norms were not recorded: these are weights.");
        return true;
    }
    const std::int64_t sequence = selection().one_sequence();
    const auto reply = study.computed_map(sequence, next.site, next.head, values);
    if (!reply) {
        replaced_ = reply.failure;
        return !reply.pending;
    }
    next.sequence = sequence;
    next.map = reply.value;
    next.look.values = values;
    if (const float most = reply.value->most(); !std::isnan(most)) next.largest = static_cast<double>(most);
    return true;
}

std::optional<MapView::Shown> MapView::ask() {
    Study& study = *this->study();
    Shown next;
    next.study = study.id();
    next.sequence = selection().one_sequence();
    // Thumbnails alone are of one sequence.
    next.site = selection().site;
    const bool implicit = study.sites().at(static_cast<std::size_t>(next.site)).has_implicit;
    if (!selection().sequence && study.sequences() > 1 && study.has_maps(next.site)) next.sequence.reset();
    next.head = selection().head;
    next.look = look_;
    // A mean over sequences has no words: each has others.
    if (!study.has_maps(next.site) || !next.sequence) next.look.words = false;
    if (!study.has_maps(next.site) || next.look.words) next.look.values = MapLook::Values::weights;
    if (implicit) next.look.values = MapLook::Values::implicit;
    // The file's own are single matrices; of several texts, and of words, there are maps below.
    const bool made = implicit && (!next.sequence || next.look.words);
    if (!made && !ask_computed(next)) {
        if (shown_.study == 0 || noticed_) show_reading();
        return std::nullopt;
    }
    // The newest request is read first: the thumbnail is the first image.
    ask_labels(next);
    ask_types(next);
    if (next.look.logits()) {
        const auto largest = largest_logit(study, next.sequence, next.site, next.head);
        if (!largest && largest.pending) return std::nullopt;
        next.largest = largest ? *largest : 0;
    }
    if (next.look.values == MapLook::Values::weights && !next.look.ranks())
        next.zeros = has_zeros(study, next.sequence, next.site, next.head);
    QString failure;
    const auto take = [&failure](const auto& reply) {
        if (failure.isEmpty()) failure = reply.failure;
        return reply.value;
    };
    if (!next.map && !next.sequence)
        next.map = take(study.mean_map(next.site, next.head));
    else if (next.look.words)
        next.map = take(study.word_map(*next.sequence, next.site, next.head));
    else if (!next.map && study.has_maps() && !implicit)
        next.map = take(study.map(*next.sequence, next.site, next.head));
    if (made && next.map) next.largest = static_cast<double>(next.map->most());
    if (next.look.words && (!next.query_words || !next.key_words)) next.map.reset();  // in a moment
    const bool mean = look_.pooling == figures::Pooling::mean;
    // Thumbnails are of pieces.
    if (next.sequence && !next.look.words)
        next.thumbnail = take(study.thumbnails(mean ? "mean" : "maximum", *next.sequence, next.site));
    if (!next.map && !next.thumbnail) {
        // Keep the shown map until another is ready, unless there is an error.
        if (!failure.isEmpty())
            show_failure(failure);
        else if (shown_.study == 0 || noticed_)
            show_reading();
        return std::nullopt;
    }
    const auto tokens = [&](bool query) {
        const auto& all =
            query ? study.query_tokens(*next.sequence, next.site) : study.key_tokens(*next.sequence, next.site);
        return std::ssize(all.ids);
    };
    next.queries = next.map ? next.map->queries() : tokens(true);
    next.keys = next.map ? next.map->keys() : tokens(false);
    return next;
}

}  // namespace headscope::widgets
