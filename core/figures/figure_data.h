// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A figure before it is drawn: numbers, labels and axes, in reading order. Recipes make it, the painter (widgets/plots)
// draws it, figure_csv() writes its numbers. No Qt and no tensor. All text is UTF-8.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/figures/subject.h"
#include "core/figures/table.h"

namespace headscope::figures {

/// How a value becomes a place on an axis or in a colour scale. symmetric_log is linear within +- linear_range and
/// logarithmic beyond, with the same slope where they meet.
enum class ScaleKind { linear, square_root, logarithmic, symmetric_log };

/// The place of `value` on such a scale, in arbitrary units: linear: value; square_root: sign(v) sqrt|v|;
/// logarithmic: log10 v (-inf for v <= 0); symmetric_log with c = linear_range: v / c, beyond +-c sign(v) (1 + ln(|v| /
/// c)).
double scaled(ScaleKind scale, double value, double linear_range = 1.0);

struct Tick {
    double position = 0;
    std::string label;
    Subject subject{};  ///< of a heat map's row or column
};

struct Axis {
    std::string label;
    ScaleKind scale = ScaleKind::linear;
    double linear_range = 1.0;                       ///< symmetric_log only
    std::optional<std::pair<double, double>> range;  ///< empty: fits the data
    std::vector<Tick> ticks;                         ///< empty: chosen by the painter
    /// One label a cell of a heat map (visible_token()); drawn when every one fits, else positions are.
    std::vector<std::string> cell_labels;
    std::int64_t first_cell = 0;   ///< position of the first cell
    double cells_per_value = 1.0;  ///< < 1: a cell pools 1 / this positions
};

enum class ColourMap { sequential, diverging };  ///< perceptually uniform and colour-blind safe

struct ColourScale {
    std::string label;
    ColourMap map = ColourMap::sequential;
    ScaleKind scale = ScaleKind::linear;
    double minimum = 0, maximum = 1;  ///< logarithmic: values below minimum are drawn as minimum
    bool zero_apart = false;          ///< exactly 0 has the theme's colour for it, and a place below the bar
    std::optional<Tick> mark;         ///< a value that the colour bar points out; its label stands before the number
};

/// Value of several cells under one device pixel. extreme: the one farthest from zero.
enum class Pooling { maximum, mean, extreme };

/// rows x columns cells, row-major; row 0 at the top. NaN cells are drawn as "none".
struct HeatMap {
    std::int64_t rows = 0, columns = 0;
    std::vector<float> values;
    ColourScale colours;
    bool write_values = false;  ///< the number in each cell, where all of them fit
    Pooling pooling = Pooling::maximum;
};

/// A grid of small square heat maps with gaps between: one panel, so that thousands of heads stay legible.
/// Tile (r, c) holds size x size values at [(r * columns + c) * size * size]; a tile that is NaN throughout is left
/// out.
struct Mosaic {
    std::int64_t rows = 0, columns = 0, size = 0;
    std::vector<float> values;
    ColourScale colours;
    Pooling pooling = Pooling::maximum;
    std::vector<std::string> tile_labels;  ///< empty, or one a tile, drawn above it
};

inline constexpr double kNoShade = std::numeric_limits<double>::quiet_NaN();

struct Curve {
    std::string name;
    std::vector<double> x, y;
    std::vector<double> error;  ///< empty, or +- per point; NaN: no bar
    int colour = 0;             ///< index into the theme's categorical colours
    bool points = false;        ///< dots instead of a line
    double shade = kNoShade;    ///< 0 to 1: the sequential map's colour instead, for members of a long row
    bool faint = false;         ///< thin and light, behind the others
    bool thin = false;          ///< for many points, where a wide line would fill the plot
    double dot = 1;             ///< diameter of a dot, in usual ones
    double width = 1;           ///< of the line, in usual ones
    bool error_of_x = false;    ///< the errors are those of x, not of y
    bool filled = false;        ///< down to the plot's lower edge, where also ends what lies below it
    Subject subject{};
    std::vector<Subject> cells{};     ///< of its points in order, where each shows something else
    std::size_t points_per_cell = 1;  ///< more: bars
};
struct Curves {
    std::vector<Curve> curves;
    /// Words beside points; where several would meet, the first ones stay.
    struct Label {
        double x = 0, y = 0;
        std::string text;
    };
    std::vector<Label> labels;
};

/// One filled density per row over its own baseline, in the units of the panel's x axis: heights are densities per
/// unit of scaled(x), so that equal areas on the page are equal shares.
struct Ridge {
    std::string name;
    std::vector<double> edges, heights;         ///< heights: edges.size() - 1
    double minimum = 0, maximum = 0, mean = 0;  ///< a whisker and a dot on the baseline; NaN: none
    std::vector<std::string> notes;             ///< one per Ridges::note_titles
    std::vector<bool> strong;                   ///< which notes to stress
    int colour = 0;
    double deviation = std::numeric_limits<double>::quiet_NaN();  ///< of the mean, between sequences; NaN: one alone
    Subject subject{};
};
struct Ridges {
    std::vector<Ridge> ridges;
    std::vector<std::string> note_titles;  ///< columns at the right edge: outlier counts
    double highest = 0;                    ///< height that fills `overlap` rows; 0: each ridge its own
    double overlap = 1.3;
    bool mirrored = false;  ///< violins: half of a height to each side of its baseline
};

/// One polygon per series over named spokes; values 0..maximum, drawn clipped to it; NaN leaves the spoke out.
struct Radar {
    std::vector<std::string> spokes;
    struct Series {
        std::string name;
        std::vector<double> values;
        int colour = 0;
        std::vector<double> deviations = {};  ///< +- each value, drawn along its spoke; empty: none; NaN: none there
    };
    std::vector<Series> series;
    double maximum = 1.0;
    std::string nothing;  ///< why there is no polygon, in its place; empty: there is one
};

/// A text whose tokens have coloured backgrounds, wrapped at the panel's width. Colours come from `colours`.
struct TextBlock {
    /// Drawn as one: a token, or the tokens that are bytes of one character.
    struct Chip {
        std::string text;                         ///< visible; a space at its begin is room
        std::vector<float> values;                ///< one a token, left to right; NaN: no background
        bool outlined = false;                    ///< a special token
        bool stressed = false;                    ///< the chosen one
        bool space_before = false;                ///< what tokenizers leave out between words
        int breaks_before = 0, breaks_after = 0;  ///< lines that begin there
    };
    std::vector<Chip> chips;
    ColourScale colours;
};

/// Tokens left and right and weighted lines between them.
struct Links {
    struct Link {
        std::int32_t left = 0, right = 0;
        float weight = 0;  ///< 0 to 1: width and strength of the line
        int colour = 0;
    };
    std::vector<std::string> left, right;
    std::string left_label, right_label;           ///< above the columns
    std::int64_t first_left = 0, first_right = 0;  ///< positions: the labels when tokens are not wanted
    std::vector<Link> links;                       ///< later ones are drawn over earlier ones
};

/// Rows of words and numbers under a heading; columns as wide as they need, numbers to the right.
struct TextTable {
    std::vector<std::string> header;
    std::vector<std::vector<std::string>> rows;  ///< each as long as the header
    std::size_t words = 1;                       ///< number of leading columns that are words
    std::vector<std::size_t> more_words{};       ///< further ones, which lose letters last
};

/// A line with a label: trained positions, means. `position` in the axis's units; heat maps: between cells.
struct Marker {
    bool vertical = true;
    double position = 0;
    std::string label;
};

struct Panel {
    std::string title;
    Axis x, y;
    std::variant<HeatMap, Mosaic, Curves, Ridges, Radar, TextBlock, Links> content;
    std::vector<Marker> markers;
    Subject subject{};
};

struct LegendEntry {
    std::string name;
    int colour = 0;
    double shade = kNoShade;  ///< as Curve's
};

struct FigureData {
    std::string recipe;
    std::string title;
    std::vector<std::string> notes;  ///< below the figure: scales used, what was sampled, limits
    std::vector<Panel> panels;       ///< row-major
    std::int64_t columns = 1;        ///< panels per row
    bool reflow = false;             ///< may use fewer columns than `columns`, where panels would be under narrowest_mm
    double narrowest_mm = 30;        ///< of one panel, see reflow
    std::int64_t block_columns = 0;  ///< > 0: a wider gap after each group of this many columns
    std::vector<std::string> column_labels;  ///< of small multiples; may be empty
    std::vector<LegendEntry> legend;         ///< may be empty
    bool shared_colours = false;             ///< one colour bar, of the first panel, for all
    bool share_y = false, share_x = false;   ///< tick and axis labels only at the left column, the bottom row
    double panel_aspect = 1.0;               ///< height / width of one panel
    double panel_height_mm = 0;              ///< > 0: wins over panel_aspect
    double widest_mm = 0;                    ///< of one panel; 0: as the page allows
    std::optional<TextTable> text_table;     ///< below the panels, as wide as the page
    std::function<Table()> table;            ///< the numbers, made when they are asked for
    std::function<std::string()> latex;      ///< a table for papers, where the recipe has one
};

}  // namespace headscope::figures
