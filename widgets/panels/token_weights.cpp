// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/token_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/figures/token_text.h"
#include "core/figures/word_units.h"
#include "core/maps/map_reader.h"
#include "core/workspace/token_display.h"

namespace headscope::widgets {
namespace {

constexpr float kNoTokenWeight = std::numeric_limits<float>::quiet_NaN();

maps::Cells cells_of(const maps::PairMap& map, TextColouring colouring, std::int64_t token) {
    if (colouring == TextColouring::row) return {token, token + 1, 0, map.keys()};
    return {0, map.queries(), token, token + 1};
}

bool inside(const maps::PairMap& map, TextColouring colouring, std::int64_t token) {
    return token < (colouring == TextColouring::row ? map.queries() : map.keys());
}

/// Sites that see the same tokens as `site` does, it among them.
std::vector<std::int64_t> alike(const Study& study, std::int64_t site) {
    const auto& sites = study.sites();
    const Site& own = sites.at(static_cast<std::size_t>(site));
    std::vector<std::int64_t> all;
    for (std::size_t i = 0; i < sites.size(); ++i)
        if (sites[i].query_stream == own.query_stream && sites[i].key_stream == own.key_stream &&
            study.header().measured(sites[i]))
            all.push_back(static_cast<std::int64_t>(i));
    return all;
}

/// Row `head` of [H, L], or the mean over heads.
std::vector<float> mass_of(const store::Values& mass, std::optional<std::int64_t> head) {
    if (mass.shape.size() != 2) return {};
    const auto heads = static_cast<std::size_t>(mass.shape[0]), length = static_cast<std::size_t>(mass.shape[1]);
    std::vector<std::vector<float>> rows;
    for (std::size_t h = 0; h < heads; ++h) {
        if (head && static_cast<std::size_t>(*head) != h) continue;
        const auto from = mass.data.begin() + static_cast<std::ptrdiff_t>(h * length);
        rows.emplace_back(from, from + static_cast<std::ptrdiff_t>(length));
    }
    std::vector<const std::vector<float>*> places;
    for (const auto& row : rows) places.push_back(&row);
    return mean_of(places);
}

/// Sums keys' values by word.
std::vector<float> mass_of_words(const store::AnalysisFile& file, std::int64_t sequence, std::int64_t site,
                                 const std::vector<float>& keys) {
    const std::string& stream = file.header().sites[static_cast<std::size_t>(site)].key_stream;
    const auto units = figures::word_units(figures::stream_tokens(file.header(), sequence, stream));
    const auto sums = figures::sums_of_words({keys.begin(), keys.end()}, units.begins);
    return {sums.begin(), sums.end()};
}

}  // namespace

Reply<ShownText> shown_text(Study& study, const std::string& stream, std::int64_t sequence, bool words) {
    const std::string key = (words ? "shown words " : "shown text ") + stream + ":" + std::to_string(sequence);
    return study.ask<ShownText>(key, -3, -3, [stream, sequence, words](const store::AnalysisFile& file) {
        const auto& tokens = figures::stream_tokens(file.header(), sequence, stream);
        return std::make_shared<const ShownText>(words ? show_text(figures::word_units(tokens).tokens)
                                                       : show_text(tokens));
    });
}

QString token_label(const store::SequenceTokens& tokens, std::int64_t token, std::size_t limit) {
    if (token < 0 || token >= std::ssize(tokens.ids)) return QStringLiteral("–");
    const auto at = static_cast<std::size_t>(token);
    const auto chip = workspace::TokenDisplay(tokens).chip(token, limit);
    const bool own = chip.parts == 1 && at < tokens.pieces.size();
    return QString::fromStdString(own ? figures::visible_token(tokens.pieces[at], limit) : chip.numbered());
}

std::vector<float> mean_of(const std::vector<const std::vector<float>*>& rows) {
    std::size_t length = 0;
    for (const auto* row : rows) length = std::max(length, row->size());
    std::vector<double> sum(length);
    std::vector<int> count(length);
    for (const auto* row : rows) {
        for (std::size_t i = 0; i < row->size(); ++i) {
            if (std::isnan((*row)[i])) continue;
            sum[i] += (*row)[i];
            ++count[i];
        }
    }
    std::vector<float> mean(length, kNoTokenWeight);
    for (std::size_t i = 0; i < length; ++i)
        if (count[i] > 0) mean[i] = static_cast<float>(sum[i] / count[i]);
    return mean;
}

std::vector<std::int64_t> largest(const std::vector<float>& values, std::size_t most) {
    std::vector<std::int64_t> places;
    for (std::size_t i = 0; i < values.size(); ++i)
        if (!std::isnan(values[i])) places.push_back(static_cast<std::int64_t>(i));
    const auto end = places.begin() + static_cast<std::ptrdiff_t>(std::min(most, places.size()));
    std::partial_sort(places.begin(), end, places.end(), [&](std::int64_t a, std::int64_t b) {
        const float x = values[static_cast<std::size_t>(a)], y = values[static_cast<std::size_t>(b)];
        return x > y || (x == y && a < b);
    });
    places.erase(end, places.end());
    return places;
}

Reply<std::vector<float>> TokenWeights::site_mean(Study& study, const TextRequest& wish, std::int64_t site) const {
    const bool mass = wish.colouring == TextColouring::mass;
    std::optional<std::int64_t> one;
    if (wish.scope == HeadScope::head) one = wish.head;
    const std::int64_t heads = study.sites()[static_cast<std::size_t>(site)].heads;
    const bool implicit = study.sites()[static_cast<std::size_t>(site)].has_implicit;
    const std::int64_t first = one.value_or(0), end = one ? *one + 1 : heads;
    std::string key = mass ? "mass mean" : wish.colouring == TextColouring::row ? "row mean" : "column mean";
    if (wish.words) key += " of words";
    for (const std::int64_t part : {wish.sequence, site, mass ? 0 : wish.token, one.value_or(-1)})
        key += ":" + std::to_string(part);
    return study.ask<std::vector<float>>(
        key, wish.sequence, site,
        [=, wanted = wanted_,
         number = wanted_->load()](const store::AnalysisFile& file) -> std::shared_ptr<const std::vector<float>> {
            if (mass) {
                auto values = mass_of(file.column_mass(wish.sequence, site), one);
                if (wish.words) values = mass_of_words(file, wish.sequence, site, values);
                return std::make_shared<const std::vector<float>>(std::move(values));
            }
            std::optional<figures::SiteWords> words;
            if (wish.words && (file.header().record.maps || implicit)) words.emplace(file, wish.sequence, site, "text");
            std::vector<std::vector<float>> rows;
            for (std::int64_t head = first; head < end; ++head) {
                if (*wanted != number) throw Stopped();
                const std::shared_ptr<const maps::PairMap> map =
                    words ? std::shared_ptr<const maps::PairMap>(words->map(head))
                    : implicit
                        ? std::shared_ptr<const maps::PairMap>(maps::read_implicit_map(file, wish.sequence, site, head))
                        : maps::read_head_map(file, wish.sequence, site, head);
                if (!map || !inside(*map, wish.colouring, wish.token)) return nullptr;
                rows.push_back(map->values(cells_of(*map, wish.colouring, wish.token)));
            }
            std::vector<const std::vector<float>*> places;
            for (const auto& row : rows) places.push_back(&row);
            return std::make_shared<const std::vector<float>>(mean_of(places));
        });
}

TextValues TokenWeights::computed(Study& study, const TextRequest& wish) {
    TextValues found;
    found.of_sites = 1;
    if (!study.has_maps()) {
        found.without_maps = true;
        return found;
    }
    const bool rollout = wish.values == figures::MapValues::rollout;
    const std::int64_t site = rollout && wish.scope == HeadScope::all ? alike(study, wish.site).back() : wish.site;
    if (!study.site_done(wish.sequence, site)) return found;
    const auto values = !rollout && wish.scope != HeadScope::head ? figures::MapValues::layer_norms : wish.values;
    const auto map = study.computed_map(wish.sequence, site, wish.head, values);
    found.pending = map.pending;
    found.failure = map.failure;
    found.without_maps = !map && !map.pending && map.failure.isEmpty();
    if (!map) return found;
    const bool row = wish.colouring == TextColouring::row;
    std::string key = row ? "computed row" : "computed column";
    for (const std::int64_t part : {wish.sequence, site, figures::of_layer(values) ? -1 : wish.head,
                                    static_cast<std::int64_t>(values), wish.token})
        key += ":" + std::to_string(part);
    const auto line = study.ask<std::vector<float>>(
        key, wish.sequence, site,
        [map = map.value, row,
         token = wish.token](const store::AnalysisFile&) -> std::shared_ptr<const std::vector<float>> {
            if (token >= (row ? map->queries() : map->keys())) return nullptr;
            const maps::Cells cells =
                row ? maps::Cells{token, token + 1, 0, map->keys()} : maps::Cells{0, map->queries(), token, token + 1};
            return std::make_shared<const std::vector<float>>(map->values(cells));
        });
    found.pending |= line.pending;
    if (found.failure.isEmpty()) found.failure = line.failure;
    if (!line) return found;
    found.sites = 1;
    found.values = *line;
    return found;
}

TextValues TokenWeights::get(Study& study, const TextRequest& wish) {
    if (wish != last_ || study.id() != last_study_) {
        last_ = wish;
        last_study_ = study.id();
        ++*wanted_;
    }
    const bool mass = wish.colouring == TextColouring::mass;
    if (!mass && wish.values != figures::MapValues::weights) return computed(study, wish);
    TextValues found;
    const auto sites = wish.scope == HeadScope::all ? alike(study, wish.site) : std::vector<std::int64_t>{wish.site};
    found.of_sites = static_cast<std::int64_t>(sites.size());
    if (!mass && !(wish.scope == HeadScope::all ? study.has_maps() : study.has_maps(wish.site))) {
        found.without_maps = true;
        return found;
    }
    std::vector<std::shared_ptr<const std::vector<float>>> kept;
    bool missing = false;
    const auto take = [&](const auto& reply, auto&& values) {
        found.pending |= reply.pending;
        if (found.failure.isEmpty()) found.failure = reply.failure;
        if (reply) kept.push_back(std::make_shared<const std::vector<float>>(values(*reply)));
        missing |= !reply && !reply.pending && reply.failure.isEmpty();
    };
    // The reader takes what was asked for last first: so the first layers are there first.
    for (auto at = sites.rbegin(); at != sites.rend(); ++at) {
        if (!study.site_done(wish.sequence, *at)) continue;
        if (wish.scope != HeadScope::head || wish.words) {
            take(site_mean(study, wish, *at), [](const std::vector<float>& values) { return values; });
        } else if (mass) {
            take(study.column_mass(wish.sequence, *at),
                 [&](const store::Values& values) { return mass_of(values, wish.head); });
        } else {
            const auto map = study.weights_map(wish.sequence, *at, wish.head);
            if (!map) {
                take(map, [](const maps::PairMap&) { return std::vector<float>(); });
                continue;
            }
            take(wish.colouring == TextColouring::row ? study.row(wish.sequence, *at, wish.head, wish.token)
                                                      : study.column(wish.sequence, *at, wish.head, wish.token),
                 [](const Profile& profile) { return profile.weights; });
        }
    }
    found.without_maps = missing && kept.empty();
    found.sites = static_cast<std::int64_t>(kept.size());
    std::vector<const std::vector<float>*> rows;
    for (const auto& row : kept) rows.push_back(row.get());
    if (!rows.empty()) found.values = mean_of(rows);
    return found;
}

}  // namespace headscope::widgets
