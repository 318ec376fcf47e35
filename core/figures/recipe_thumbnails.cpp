// SPDX-License-Identifier: GPL-3.0-or-later
// Every head of every layer as a small attention map, from the stored block means or maxima.

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
/// Cells of the whole figure: as many as 180 mm by 180 mm show at 600 dpi is far more than a reader sees, and a file
/// with 48 x 64 heads of 128 x 128 cells would hold 50 million.
constexpr std::int64_t kMostCells = 6'000'000;

struct Tile {
    std::int64_t layer = 0, head = 0;
    std::string site;
    std::int64_t size = 0;
    std::vector<float> values;  ///< [size, size]; NaN where the mask hides the whole block
};

/// Blocks of a causal map that lie wholly above the diagonal hold no allowed pair: drawn as none, not as zero.
void hide_future(Tile& tile, const Site& site) {
    if (!site.causal || site.kind != "self") return;
    for (std::int64_t r = 0; r < tile.size; ++r) {
        for (std::int64_t c = r + 1; c < tile.size; ++c)
            tile.values[static_cast<std::size_t>(r * tile.size + c)] = kNone;
    }
}

Tile shrunk(const Tile& tile, std::int64_t size, bool maximum) {
    if (size >= tile.size) return tile;
    Tile small{tile.layer, tile.head, tile.site, size,
               std::vector<float>(static_cast<std::size_t>(size * size), kNone)};
    for (std::int64_t r = 0; r < size; ++r) {
        for (std::int64_t c = 0; c < size; ++c) {
            double sum = 0;
            float most = 0;
            int count = 0;
            for (std::int64_t y = r * tile.size / size; y < ((r + 1) * tile.size + size - 1) / size; ++y) {
                for (std::int64_t x = c * tile.size / size; x < ((c + 1) * tile.size + size - 1) / size; ++x) {
                    const float value = tile.values[static_cast<std::size_t>(y * tile.size + x)];
                    if (std::isnan(value)) continue;
                    most = count == 0 ? value : std::max(most, value);
                    sum += value;
                    ++count;
                }
            }
            if (count > 0) {
                small.values[static_cast<std::size_t>(r * size + c)] = maximum ? most : static_cast<float>(sum / count);
            }
        }
    }
    return small;
}

Table thumbnails_table(const std::vector<Tile>& tiles, const std::string& statistic) {
    std::vector<std::int64_t> layer, head, row, column;
    std::vector<std::string> site;
    std::vector<double> value;
    for (const auto& tile : tiles) {
        for (std::int64_t i = 0; i < tile.size * tile.size; ++i) {
            const float v = tile.values[static_cast<std::size_t>(i)];
            if (std::isnan(v)) continue;
            layer.push_back(tile.layer);
            site.push_back(tile.site);
            head.push_back(tile.head);
            row.push_back(i / tile.size);
            column.push_back(i % tile.size);
            value.push_back(v);
        }
    }
    return {{{"layer", std::move(layer)},
             {"site", std::move(site)},
             {"head", std::move(head)},
             {"query_block", std::move(row)},
             {"key_block", std::move(column)},
             {statistic, std::move(value)}}};
}

std::vector<Tile> read_tiles(const store::AnalysisFile& file, const std::vector<std::int64_t>& sites, std::int64_t s,
                             const FigureOptions& options) {
    std::int64_t count = 0;
    for (const auto site : sites) {
        check_head(file, site, options);
        count += options.head ? 1 : file.header().sites[static_cast<std::size_t>(site)].heads;
    }
    const auto affordable =
        static_cast<std::int64_t>(std::sqrt(static_cast<double>(kMostCells / std::max<std::int64_t>(1, count))));
    std::vector<Tile> tiles;
    for (const auto site : sites) {
        const auto& about = file.header().sites[static_cast<std::size_t>(site)];
        const auto stored = file.thumbnail(options.statistic, s, site);
        // The file's T is of its longest sequence; a shorter one fills the upper left corner, the rest is NaN.
        const auto side = stored.shape[1];
        const auto length = std::ssize(file.header().sequences[static_cast<std::size_t>(s)].ids);
        const auto size = std::min(side, length);
        for (std::int64_t h = 0; h < about.heads; ++h) {
            if (options.head && *options.head != h) continue;
            Tile tile{about.layer, h, site_label(file, site), size, {}};
            for (std::int64_t r = 0; r < size; ++r) {
                for (std::int64_t c = 0; c < size; ++c) {
                    const double value = stored.data[static_cast<std::size_t>((h * side + r) * side + c)];
                    tile.values.push_back(std::isfinite(value) ? static_cast<float>(value) : kNone);
                }
            }
            hide_future(tile, about);
            tiles.push_back(shrunk(tile, std::max<std::int64_t>(8, affordable), options.statistic == "maximum"));
        }
    }
    return tiles;
}

ColourScale shared_scale(const std::vector<Tile>& tiles, const std::string& statistic) {
    ColourScale scale;
    float most = 0;
    for (const auto& tile : tiles) {
        for (const float value : tile.values) {
            if (!std::isnan(value)) most = std::max(most, value);
        }
    }
    scale.label = statistic == "maximum" ? "largest weight of a block" : "mean weight of a block";
    scale.maximum = most > 0 ? most : 1;
    scale.scale = ScaleKind::logarithmic;
    scale.minimum = scale.maximum * (statistic == "maximum" ? 1e-3 : 1e-4);
    return scale;
}

}  // namespace

FigureData thumbnails(Files files, const FigureOptions& options) {
    if (options.statistic != "mean" && options.statistic != "maximum") {
        throw Error(ErrorCode::usage, "--statistic", "expected mean or maximum", "found " + escaped(options.statistic));
    }
    if (files.size() != 1) {
        throw Error(ErrorCode::usage, "figure thumbnails", "expected one analysis file",
                    "found " + std::to_string(files.size()));
    }
    const auto& file = *files.front();
    const auto s = chosen_sequence(file, options);
    const auto sites = chosen_sites(file, options);
    const auto tiles = read_tiles(file, sites, s, options);

    Mosaic mosaic;
    mosaic.pooling = options.statistic == "maximum" ? Pooling::maximum : Pooling::mean;
    mosaic.colours = shared_scale(tiles, options.statistic);
    for (const auto& tile : tiles) mosaic.size = std::max(mosaic.size, tile.size);
    Panel panel;
    const auto count = std::ssize(tiles);
    // One layer, or one head of all layers: no grid of its own, so the tiles are numbered and wrapped.
    const bool wrapped = sites.size() == 1 || options.head.has_value();
    if (wrapped) {
        mosaic.columns = std::min<std::int64_t>(count, count <= 4 ? count : (count <= 16 ? 4 : 8));
        mosaic.rows = (count + mosaic.columns - 1) / mosaic.columns;
    } else {
        mosaic.rows = std::ssize(sites);
        for (const auto site : sites) {
            mosaic.columns =
                std::max<std::int64_t>(mosaic.columns, file.header().sites[static_cast<std::size_t>(site)].heads);
        }
        for (std::int64_t c = 0; c < mosaic.columns; ++c)
            panel.x.ticks.push_back({static_cast<double>(c), std::to_string(c)});
        for (std::int64_t r = 0; r < mosaic.rows; ++r) {
            panel.y.ticks.push_back({static_cast<double>(r), site_label(file, sites[static_cast<std::size_t>(r)])});
        }
        panel.x.label = "head";
        panel.y.label = "layer";
    }
    const auto cells = static_cast<std::size_t>(mosaic.size * mosaic.size);
    mosaic.values.assign(static_cast<std::size_t>(mosaic.rows * mosaic.columns) * cells, kNone);
    if (wrapped) mosaic.tile_labels.assign(static_cast<std::size_t>(count), "");
    std::int64_t row = -1;
    std::string before;
    for (std::int64_t i = 0; i < count; ++i) {
        const auto& tile = tiles[static_cast<std::size_t>(i)];
        if (i == 0 || tile.site != before) ++row;
        before = tile.site;
        const auto at = wrapped ? i : row * mosaic.columns + tile.head;
        std::copy(tile.values.begin(), tile.values.end(),
                  mosaic.values.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(at) * cells));
        if (wrapped) {
            mosaic.tile_labels[static_cast<std::size_t>(i)] =
                options.head ? "layer " + tile.site : "head " + std::to_string(tile.head);
        }
    }

    FigureData figure;
    figure.title = std::string("Attention of every head") + (options.head ? " " + std::to_string(*options.head) : "") +
                   (options.layer ? ", layer " + std::to_string(*options.layer) : "");
    if (options.head) {
        figure.title = "Attention of head " + std::to_string(*options.head) +
                       (options.layer ? " of layer " + std::to_string(*options.layer) : " of every layer");
    } else if (options.layer) {
        figure.title = "Attention of every head of layer " + std::to_string(*options.layer);
    }
    figure.panel_aspect = static_cast<double>(mosaic.rows) / static_cast<double>(mosaic.columns);
    // A page stays about as high as A4, labels of the tiles included, however many layers there are.
    const double highest_mm = std::max(60.0, 235.0 - (wrapped ? 3.5 * static_cast<double>(mosaic.rows) : 0.0));
    figure.widest_mm = std::min(static_cast<double>(mosaic.columns) * 60, highest_mm / figure.panel_aspect);
    panel.content = std::move(mosaic);
    figure.panels.push_back(std::move(panel));
    figure.shared_colours = true;
    figure.notes = source_notes(files, options);
    figure.notes.push_back(
        "Rows of a map are queries, columns keys. One logarithmic colour scale for all heads; " +
        std::string(options.statistic == "maximum" ? "the largest weight" : "the mean weight") +
        " of each block of the text, smaller ones than the scale's end drawn as its end, as are blocks that a "
        "window or padding hides. Grey: the future of causal layers, or no value.");
    figure.table = [tiles, statistic = options.statistic] { return thumbnails_table(tiles, statistic); };
    return figure;
}

}  // namespace headscope::figures
