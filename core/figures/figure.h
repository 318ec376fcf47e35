// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What a figure is before it is drawn: plain numbers, labels, axes, in the order in which they are read. Recipes
// (core/figures/recipe_*.cpp) make it from analysis files; the painter (widgets/) draws it; figure_csv() writes its
// numbers. Nothing here knows Qt or a tensor.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace headscope::store {
class AnalysisFile;
}

namespace headscope::figures {

enum class ScaleKind { linear, logarithmic, symmetric_log };

struct Tick {
    double position = 0;
    std::string label;
};

struct Axis {
    std::string label;
    ScaleKind scale = ScaleKind::linear;
    double linear_range = 1.0;                             ///< symmetric_log: linear within +- this
    std::optional<std::pair<double, double>> range;        ///< empty: fits the data
    std::vector<Tick> ticks;                               ///< empty: chosen by the painter
    bool ticks_are_tokens = false;                         ///< drawn in the token font, rotated on x, thinned if they do not fit
};

enum class ColourMap { sequential, diverging };            ///< perceptually uniform and colour-blind safe

struct ColourScale {
    std::string label;
    ColourMap map = ColourMap::sequential;
    ScaleKind scale = ScaleKind::linear;
    double minimum = 0, maximum = 1;
};

/// rows x columns cells; row 0 at the top. NaN cells are drawn as "none".
struct HeatMap {
    std::int64_t rows = 0, columns = 0;
    std::vector<double> values;
    ColourScale colours;
    bool write_values = false;                             ///< the number in each cell, where it fits
};

struct Curve {
    std::string name;
    std::vector<double> x, y;
    std::vector<double> error;                             ///< empty, or +- per point
    int colour = 0;                                        ///< index into the theme's categorical colours
    bool points = false;
};
struct Curves {
    std::vector<Curve> curves;
};

/// One filled density per row, drawn as a ridge line over its own baseline; optional notes at the right edge.
struct Ridge {
    std::string name;
    std::vector<double> edges, heights;                    ///< heights: edges.size() - 1
    double minimum = 0, maximum = 0, mean = 0;
    std::string note;                                      ///< outlier counts
    int colour = 0;
};
struct Ridges {
    std::vector<Ridge> ridges;
};

/// One polygon per series over named spokes, values 0..1 unless the panel says otherwise.
struct Radar {
    std::vector<std::string> spokes;
    struct Series {
        std::string name;
        std::vector<double> values;
        int colour = 0;
    };
    std::vector<Series> series;
    double maximum = 1.0;
};

struct Marker {                                            ///< a line with a label: trained positions, means
    bool vertical = true;
    double position = 0;
    std::string label;
};

struct Panel {
    std::string title;
    Axis x, y;
    std::variant<HeatMap, Curves, Ridges, Radar> content;
    std::vector<Marker> markers;
};

/// Rows for CSV: the numbers of the figure, tidy (one observation per row).
struct Table {
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> rows;
};

struct FigureData {
    std::string recipe;
    std::string title;
    std::vector<std::string> notes;                        ///< below the figure: scales used, what was sampled, limits
    std::int64_t columns = 1;                              ///< panels per row
    std::vector<Panel> panels;                             ///< row-major
    std::vector<std::string> row_labels, column_labels;    ///< of small multiples; may be empty
    bool shared_colours = false;                           ///< one colour bar for all panels
    double panel_aspect = 1.0;                             ///< height / width of one panel
    Table table;
};

/// What the user can choose.
struct FigureOptions {
    std::optional<std::int64_t> layer, head, sequence;     ///< counted from 0
    std::string indicator;                                 ///< for `indicators`; empty: all
    std::string statistic = "mean";                        ///< thumbnails: mean, maximum
    std::int64_t pixels = 1024;                            ///< `attention`: most cells along a side, max-pooled beyond
};

struct RecipeInfo {
    std::string name, description, needs;
};
std::vector<RecipeInfo> recipes();

/// Throws Error (usage) for an unknown recipe, naming the known ones, or when a file lacks what the recipe needs.
FigureData make_figure(const std::string& recipe, std::span<const std::shared_ptr<store::AnalysisFile>> files,
                       const FigureOptions& options);

std::string figure_csv(const FigureData& figure);

}  // namespace headscope::figures
