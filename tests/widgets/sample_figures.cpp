// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/widgets/sample_figures.h"

#include <array>
#include <cmath>
#include <limits>

#include "core/figures/token_text.h"

namespace headscope::tests {

using namespace figures;

namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

/// Reproducible, between 0 and 1, without a pattern that one could see.
double noise(std::int64_t i) {
    return std::fmod(0.5 + 0.6180339887498949 * static_cast<double>(i * i + 3 * i), 1.0);
}

}  // namespace

FigureData sample_heat_map(std::int64_t side, bool tokens) {
    static const std::array<const char*, 8> words{
        " the", " wind", "\n", "月光", "🙂", "\xE6", "antidisestablishmentarianism", "&<\">"};
    FigureData figure;
    figure.recipe = "attention";
    figure.title = "Attention & <more>, layer 1";
    figure.notes = {
        "A note that is long enough to need a second line in a narrow column, so that wrapping is seen to work."};
    Panel panel;
    panel.x.label = "key";
    panel.y.label = "query";
    HeatMap map;
    map.rows = map.columns = side;
    for (std::int64_t r = 0; r < side; ++r) {
        for (std::int64_t c = 0; c < side; ++c) map.values.push_back(c > r ? kNone : (c == r ? 1.0F : 0.0F));
    }
    map.colours.label = "attention weight";
    for (std::int64_t i = 0; tokens && i < side; ++i) {
        panel.x.cell_labels.push_back(visible_token(words[static_cast<std::size_t>(i % 8)]));
    }
    panel.y.cell_labels = panel.x.cell_labels;
    panel.content = std::move(map);
    panel.markers = {{true, static_cast<double>(side) / 2, "trained to here"},
                     {false, static_cast<double>(side) / 2, ""}};
    figure.panels.push_back(std::move(panel));
    figure.shared_colours = true;
    return figure;
}

FigureData sample_radars(int layers) {
    FigureData figure;
    figure.title = "Indicators";
    for (int l = 0; l < layers; ++l) {
        Radar radar{{"H", "C", "HD", "LF0", "LF1", "LF2", "LF3", "S"}, {}, 1.0, {}};
        for (int m = 0; m < 2; ++m) {
            Radar::Series series{"model", {}, m};
            for (int k = 0; k < 8; ++k) series.values.push_back(noise(l * 16 + m * 8 + k) * 1.3);
            series.values[3] = std::nan("");
            radar.series.push_back(std::move(series));
        }
        Panel panel;
        panel.title = "Layer " + std::to_string(l);
        panel.content = std::move(radar);
        figure.panels.push_back(std::move(panel));
    }
    figure.columns = 6;
    figure.reflow = true;
    figure.narrowest_mm = 12;
    figure.legend = {{"one", 0}, {"another", 1}};
    return figure;
}

FigureData sample_ridges(int rows) {
    FigureData figure;
    figure.title = "Scores";
    Ridges ridges;
    ridges.note_titles = {"> 10", "> 100"};
    for (int r = 0; r < rows; ++r) {
        Ridge ridge;
        ridge.name = std::to_string(r);
        for (int b = 0; b <= 60; ++b) ridge.edges.push_back(-30 + b);
        for (int b = 0; b < 60; ++b) ridge.heights.push_back(std::exp(-0.02 * (b - 30) * (b - 30) * (1 + noise(r))));
        ridge.minimum = -300;
        ridge.maximum = 900;
        ridge.mean = 1;
        ridge.notes = {"12.3k", "7"};
        ridge.strong = {false, true};
        ridges.ridges.push_back(std::move(ridge));
    }
    ridges.highest = 1;
    Panel panel;
    panel.x.label = "score";
    panel.x.scale = ScaleKind::symmetric_log;
    panel.x.linear_range = 8;
    panel.x.range = std::pair(-20.0, 20.0);  // narrower than the data: all of it must be cut
    panel.y.label = "layer";
    panel.content = std::move(ridges);
    figure.panels.push_back(std::move(panel));
    figure.panel_height_mm = 8 + rows * 4;
    return figure;
}

FigureData sample_curves() {
    FigureData figure;
    Curve line{"line", {1, 10, 100, 1000}, {1, -50, 3, 4}, {}, 0, false};
    Curve points{"points", {1, 10, 100}, {2, 3, std::nan("")}, {0.5, 0.5, 0.5}, 1, true};
    Panel panel;
    panel.x.scale = ScaleKind::logarithmic;
    panel.x.label = "tokens";
    panel.y.range = std::pair(0.0, 5.0);
    panel.y.label = "loss";
    Curves curves;
    curves.curves = {line, points};
    panel.content = curves;
    panel.markers = {{true, 50, "trained"}, {false, 2.5, "mean"}};
    figure.panels.push_back(std::move(panel));
    figure.panel_aspect = 0.6;
    return figure;
}

FigureData sample_mosaic(std::int64_t rows, std::int64_t columns, bool labelled) {
    FigureData figure;
    figure.title = "Heads";
    Mosaic mosaic;
    mosaic.rows = rows;
    mosaic.columns = columns;
    mosaic.size = 16;
    for (std::int64_t t = 0; t < rows * columns; ++t) {
        for (std::int64_t i = 0; i < 256; ++i) {
            mosaic.values.push_back(i % 16 > i / 16 ? kNone : static_cast<float>(noise(t * 7 + i)));
        }
        if (labelled) mosaic.tile_labels.push_back("head " + std::to_string(t));
    }
    Panel panel;
    for (std::int64_t c = 0; c < columns; ++c) panel.x.ticks.push_back({static_cast<double>(c), std::to_string(c)});
    for (std::int64_t r = 0; r < rows; ++r) panel.y.ticks.push_back({static_cast<double>(r), std::to_string(r)});
    panel.x.label = "head";
    panel.y.label = "layer";
    figure.panel_aspect = static_cast<double>(rows) / static_cast<double>(columns);
    panel.content = std::move(mosaic);
    figure.panels.push_back(std::move(panel));
    figure.shared_colours = true;
    return figure;
}

FigureData sample_multiples(int panels) {
    FigureData figure;
    figure.title = "A title that is so long that it has to go on in a second line where the column is narrow";
    for (int p = 0; p < panels; ++p) {
        HeatMap map;
        map.rows = 4;
        map.columns = 8;
        for (std::int64_t i = 0; i < 32; ++i) map.values.push_back(static_cast<float>(noise(p + i)));
        map.write_values = true;
        map.colours.label = "nats";
        Panel panel;
        panel.title = "An indicator with a long name, number " + std::to_string(p);
        for (int i = 0; i < 8; ++i) panel.x.ticks.push_back({static_cast<double>(i), std::to_string(i)});
        for (int i = 0; i < 4; ++i) panel.y.ticks.push_back({static_cast<double>(i), "encoder " + std::to_string(i)});
        panel.x.label = "head";
        panel.y.label = "layer";
        panel.content = std::move(map);
        figure.panels.push_back(std::move(panel));
    }
    figure.columns = 4;
    figure.reflow = true;
    figure.narrowest_mm = 22;
    figure.panel_aspect = 0.5;
    figure.share_x = figure.share_y = true;
    return figure;
}

}  // namespace headscope::tests
