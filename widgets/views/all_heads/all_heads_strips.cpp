// SPDX-License-Identifier: GPL-3.0-or-later
// Requests for strips of thumbnails, and their color scale.
#include "widgets/views/all_heads/all_heads.h"

#include <algorithm>
#include <cmath>

#include "core/figures/recipe.h"
#include "core/workspace/head_filter.h"
#include "widgets/plots/colour_map.h"
#include "widgets/plots/ticks.h"
#include "widgets/views/all_heads/head_wall.h"
#include "widgets/views/overview/overview_scale.h"

namespace headscope::widgets {

/// True if the site's thumbnails exist; a recurrent site's are recorded with its implicit matrix.
bool AllHeads::drawn(std::int64_t site) const {
    const Site& place = study()->sites()[static_cast<std::size_t>(site)];
    return place.has_matrix || (place.has_implicit && study()->has_maps(site));
}

ThumbnailRequest AllHeads::wish_for(std::int64_t site) const {
    ThumbnailRequest wish;
    wish.statistic = statistic();
    wish.sequences = sequences_.at(static_cast<std::size_t>(site));
    wish.site = site;
    wish.pixels = static_cast<int>(std::lround(wall_->size() * wall_->devicePixelRatioF()));
    const bool implicit = study()->sites()[static_cast<std::size_t>(site)].has_implicit;
    wish.colours =
        colour_table(implicit ? figures::ColourMap::diverging : figures::ColourMap::sequential, desk().theme());
    wish.none = desk().theme().none.rgb();
    wish.zero = desk().theme().zero.rgb();
    return wish;
}

std::optional<double> AllHeads::shared_end() {
    std::optional<double> most;
    for (std::int64_t site = 0; site < std::ssize(study()->sites()); ++site) {
        const ThumbnailRequest wish = wish_for(site);
        if (wish.sequences.empty() || !study()->sites()[static_cast<std::size_t>(site)].has_matrix) continue;
        const std::string key = "thumbnail end " + wish.statistic + " " + std::to_string(site) + " " +
                                std::to_string(selection().sequence.value_or(-1));
        const auto end =
            study()->ask<double>(key, selection().sequence.value_or(-1), site, [wish](const store::AnalysisFile& file) {
                return std::make_shared<const double>(highest_of_thumbnails(file, wish));
            });
        if (!end.failure.isEmpty()) failure_ = end.failure;
        if (end) most = std::max(most.value_or(0), *end);
    }
    if (most) most = round_up(*most);
    return most;
}

void AllHeads::ask_for_strips() {
    const std::optional<double> end = shared() ? shared_end() : std::nullopt;
    show_scale(end);
    const auto [first, last] = wall_->visible_rows();
    const Theme& theme = desk().theme();
    for (std::int64_t site = first; site <= last; ++site) {
        ThumbnailRequest wish = wish_for(site);
        if (wish.sequences.empty() || !drawn(site)) continue;
        // Coefficients have no end that weights share.
        const bool implicit = study()->sites()[static_cast<std::size_t>(site)].has_implicit;
        if (!implicit && shared() && !end) continue;
        if (!implicit) wish.highest = end;
        std::string key = "strip " + wish.statistic + " " + std::to_string(site) + " " + std::to_string(wish.pixels) +
                          " " + (wish.highest ? std::to_string(*wish.highest) : "own") + " " +
                          (implicit ? theme.diverging_map : theme.sequential_map) + (theme.dark ? " dark" : " light");
        // A mean of more sequences is another one; of one, it matters which.
        key += " " + std::to_string(selection().sequence.value_or(-1)) + " " + std::to_string(wish.sequences.size());
        if (wall_->key(site) == key) continue;
        const auto strip = study()->ask<ThumbnailStrip>(
            key, selection().sequence.value_or(-1), site,
            [wish = std::move(wish)](const store::AnalysisFile& file) { return draw_thumbnails(file, wish); });
        if (!strip.failure.isEmpty()) failure_ = strip.failure;
        if (strip) wall_->set_strip(site, key, strip.value);
    }
}

/// True if a head has enough zero weights for its thumbnail to set them apart.
bool AllHeads::some_zeros() {
    const auto heads = study()->heads(selection().sequence);
    const auto column = heads ? heads->column("zero_fraction") : std::nullopt;
    for (std::size_t row = 0; column && row < heads->rows.size(); ++row)
        if (heads->value(row, *column) >= figures::kSparseHead) return true;
    return false;
}

void AllHeads::show_scale(std::optional<double> highest) {
    const bool maximum = statistic() == "maximum";
    const QString what =
        maximum ? tr("largest weight of a block, logarithmic") : tr("mean weight of a block, logarithmic");
    const QString name =
        shared() ? tr("Shared: %1").arg(what) : tr("Per head: %1, up to each head's highest").arg(what);
    const QString zeros = some_zeros() ? tr(" · sand color: exactly 0") : QString();
    std::vector<std::pair<double, QString>> ticks;
    if (shared() && highest) {
        const figures::ColourScale scale = thumbnail_scale(statistic(), *highest);
        for (const double value : round_ticks(scale.scale, scale.minimum, scale.maximum, 5))
            ticks.emplace_back(fraction(scale, value), number_label(value));
    } else if (!shared()) {
        ticks = {{0, maximum ? tr("a thousandth") : tr("a ten-thousandth")}, {1, tr("highest of the head")}};
    }
    bar_->set_ticks(name + zeros, figures::ColourMap::sequential, std::move(ticks));
}

}  // namespace headscope::widgets
