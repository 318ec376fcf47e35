// SPDX-License-Identifier: GPL-3.0-or-later
// What the map view does by name and by keys: pairs and regions without a mouse.
#include <QLineEdit>
#include <QToolButton>
#include <algorithm>

#include "widgets/plots/map/map_plot.h"
#include "widgets/views/map/map.h"
#include "widgets/views/map/map_bar.h"

namespace headscope::widgets {

void MapView::make_commands() {
    const auto there = [this] { return shown_.study != 0; };
    const auto exact = [this] { return shown_.map != nullptr; };
    const auto region = [this] { return shown_.map != nullptr && plot_->region().has_value(); };
    add_command(
        "map_region_shown", tr("Region: what is shown"), Qt::Key_R, tr("Its mass, and copies of it"),
        [this] {
            plot_->set_region(plot_->shown());
            take_region();
        },
        exact);
    add_command(
        "map_region_clear", tr("Clear the region"), {}, tr("As Escape does"), [this] { clear_region(); }, region);
    add_command(
        "map_region_zoom", tr("Zoom to the region"), Qt::SHIFT | Qt::Key_R, tr("Show nothing but it"),
        [this] { zoom_to_region(); }, region);
    add_command(
        "map_jump_to", tr("Jump to a token…"), Qt::Key_J, tr("By its position or text"),
        [this] { bar_->jump()->setFocus(); }, there);
    add_command(
        "map_copy_value", tr("Copy the pair's value"), {}, tr("Of the pair under the pointer or chosen"),
        [this] { copy_value(); },
        [this] {
            const auto& at = probe_.reading().target;
            return shown_.map && !nothing_named() && at.query && at.key;
        });
    add_command(
        "map_copy_table", tr("Copy the region, or what is shown, as CSV"), {}, tr("Pair by pair"),
        [this] { copy_shown(); }, exact);
    add_command(
        "map_zoom_all", tr("Show the whole map"), {}, tr("As 0 does"), [this] { plot_->show_all(); }, there);
    add_command(bar_->findChild<QToolButton*>(QStringLiteral("map_region")), tr("Regions by dragging: on, off"));
    add_command(bar_->findChild<QToolButton*>(QStringLiteral("map_profiles")), tr("Row and column: show, hide"));
    add_command(strip_action_);
}

void MapView::step_pair(int queries, int keys) {
    if (shown_.study == 0 || shown_.queries <= 0 || shown_.keys <= 0) return;
    const maps::Cells shown = plot_->shown();
    const bool first = !chosen().query && !chosen().key;
    const std::int64_t query = chosen().query.value_or(shown.q_begin + shown.queries() / 2) + (first ? 0 : queries);
    const std::int64_t key = chosen().key.value_or(shown.k_begin + shown.keys() / 2) + (first ? 0 : keys);
    select_units(std::clamp<std::int64_t>(query, 0, shown_.queries - 1),
                 std::clamp<std::int64_t>(key, 0, shown_.keys - 1));
}

void MapView::stretch_region(int queries, int keys) {
    if (!shown_.map) return;
    if (!query_ || !key_) return step_pair(0, 0);  // a pair to begin at
    const auto& region = plot_->region();
    auto corner = corner_ && region ? *corner_ : std::pair(*query_, *key_);
    corner.first = std::clamp<std::int64_t>(corner.first + queries, 0, shown_.queries - 1);
    corner.second = std::clamp<std::int64_t>(corner.second + keys, 0, shown_.keys - 1);
    plot_->set_region(maps::Cells{std::min(*query_, corner.first), std::max(*query_, corner.first) + 1,
                                  std::min(*key_, corner.second), std::max(*key_, corner.second) + 1});
    take_region();
    corner_ = corner;
}

}  // namespace headscope::widgets
