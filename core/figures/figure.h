// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What a figure is before it is drawn: plain numbers, labels, axes, in the order in which they are read. Recipes
// (core/figures/recipe_*.cpp, see recipe.h) make it from analysis files; the painter (widgets/) draws it;
// figure_csv() writes its numbers. Nothing here knows Qt or a tensor. All text is UTF-8.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/figures/table.h"

namespace headscope::checkpoint {
struct TensorSummary;
}

namespace headscope::cost {
struct CostTable;
}

namespace headscope::tokenizer {
class WordHash;
}

namespace headscope::store {
class AnalysisFile;
struct RunRecord;
struct Evaluation;
}  // namespace headscope::store

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

/// What several cells under one device pixel become. extreme: the one farthest from zero.
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
    bool thin = false;          ///< of so many points that a wide line would fill the plot
    double dot = 1;             ///< diameter of a dot, in usual ones
    double width = 1;           ///< of the line, in usual ones
    bool error_of_x = false;    ///< the errors are those of x, not of y
    bool filled = false;        ///< down to the plot's lower edge, where also ends what lies below it
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
    /// What is drawn as one: a token, or the tokens that are bytes of one character.
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
    std::size_t words = 1;                       ///< the first so many columns are words
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
};

struct LegendEntry {
    std::string name;
    int colour = 0;
    double shade = kNoShade;  ///< as Curve's
};

struct FigureData {
    std::string recipe;
    std::string title;
    std::vector<std::string> notes;          ///< below the figure: scales used, what was sampled, limits
    std::vector<Panel> panels;               ///< row-major
    std::int64_t columns = 1;                ///< panels per row
    bool reflow = false;                     ///< columns is a wish: fewer where panels would be under narrowest_mm
    double narrowest_mm = 30;                ///< of one panel, see reflow
    std::int64_t block_columns = 0;          ///< > 0: a wider gap after each so many columns
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

/// A model as the cost tables know it: formulas at its sizes, and beside them what was measured.
struct CostModel {
    std::string name;
    std::int64_t training_length = 0;  ///< 0: not known
    std::shared_ptr<const cost::CostTable> table;
};

/// A tensor of a checkpoint, counted.
struct TensorSpread {
    std::string model, tensor;        ///< their names
    std::string type;                 ///< as the file says it: "BF16"
    std::vector<std::int64_t> shape;  ///< none: a single number
    std::shared_ptr<const checkpoint::TensorSummary> numbers;
};

/// What hashes words: a model's, or without a name the program's own (tokenizer::sample_hash()).
struct NamedHash {
    std::string name;
    std::shared_ptr<const tokenizer::WordHash> hash;  ///< its words have bits
};

/// How the values of an indicator become colours: as they are, by their range over everything in the figure, or by the
/// range of each layer.
enum class Normalise { absolute, minmax, layer };

/// How weights become colours. by_length: square root for short texts, logarithmic for long ones. row_rank: each
/// weight's rank among those of its row, from 0 to 1.
enum class CellScale { by_length, linear, logarithmic, square_root, row_rank };

/// What a map is of: weights after the normaliser, the scores before it, how long what a key gives to a query is
/// (core/maps/norm_map.h; of a head, or of a layer's heads together), rollout (core/maps/rollout.h). implicit: what
/// weights are at a recurrent layer (core/maps/implicit_map.h); nobody asks for it by name.
enum class MapValues { weights, logits, norms, layer_norms, rollout, implicit };

/// One map of a layer, not one of each head.
inline bool of_layer(MapValues values) {
    return values == MapValues::layer_norms || values == MapValues::rollout;
}
inline bool of_norms(MapValues values) {
    return values == MapValues::norms || values == MapValues::layer_norms;
}

/// What colours the text: what a chosen query looks at, who looks at a chosen key, who is looked at at all, the loss of
/// each token.
enum class TextColour { automatic, weights, lookers, mass, loss };

/// Where the colours of a text end: at its largest value, or at 1.
enum class ColourRange { largest, one };

/// Which attention of a model with several: the encoder's, the decoder's to itself, the decoder's to the encoder; of a
/// layer with two branches the softmax or the linear one.
enum class Tower { any, encoder, decoder, cross, softmax, linear };

/// What rows and columns of a map are.
enum class Units { pieces, words };

/// Scores before the softmax, weights after it, or both.
enum class Stage { before, after, both };

/// What a run's curves are drawn against.
enum class Against { step, tokens, time };

/// In the place of a head: the mean over those of the layer.
inline constexpr std::int64_t kMeanOfHeads = -1;

/// What the figure `cost` is of: token mixing by length; weights of a sublayer of the variants of multi-head attention
/// by its heads; those of stacks.
enum class CostOf { mixers, sublayer, stacks };

/// What the user can choose; figure_options.h says how it is called and checked.
struct FigureOptions {
    std::optional<std::int64_t> layer, head, sequence;  ///< counted from 0; `attention` has kMeanOfHeads, too
    std::string indicator;                              ///< for `indicators`; empty: all
    std::string statistic = "mean";                     ///< thumbnails: mean, maximum
    std::int64_t pixels = 1024;                         ///< `attention`: most cells along a side, pooled beyond
    std::vector<std::int64_t> heads;                    ///< more than one: of `lines`; of `attention` one a file
    std::vector<std::int64_t> layers;                   ///< more than one: of `attention`, one a file
    bool all_sequences = false;                         ///< mean over sequences; `sequence` is empty
    Normalise normalise = Normalise::absolute;          ///< `indicators`
    CellScale scale = CellScale::by_length;             ///< `attention`
    /// A part of the map: queries [from_query, to_query), keys [from_key, to_key); absent ends are the text's.
    std::optional<std::int64_t> from_query, to_query, from_key, to_key;
    MapValues values = MapValues::weights;      ///< maps of `attention`, `text` and `difference`
    Pooling pooling = Pooling::maximum;         ///< their pooled cells; logits: that of greatest magnitude
    std::optional<std::int64_t> query, key;     ///< `text`: the token that looks, the one that is looked at
    TextColour colour = TextColour::automatic;  ///< `text`; automatic: by what of the two is given, else mass
    ColourRange range = ColourRange::largest;   ///< `text`
    Units units = Units::pieces;                ///< `attention`, `lines`, `text`; positions count in them
    Tower tower = Tower::any;                   ///< `attention`, `lines`, `text`, maps of `difference`
    /// `difference`: what the first is subtracted from, where it is not the same; layer and head: of maps.
    std::optional<std::int64_t> other_sequence, other_layer, other_head;
    std::optional<double> least;                  ///< `lines`: smaller weights are not drawn
    ScaleKind distance = ScaleKind::logarithmic;  ///< `bias`: that axis; or linear
    bool scale_per_head = false;                  ///< `thumbnails`: each up to its own highest value
    Stage stage = Stage::before;                  ///< `logits`
    std::optional<std::int64_t> step;             ///< `timeline`: radar and thumbnails at the last probe up to it
    /// Of the running mean, 1: none. `loss` of runs: steps; `position-perplexity`: buckets.
    std::optional<std::int64_t> smooth;
    Against against = Against::step;  ///< `loss` of runs, `timeline`
    std::string task, metric;         ///< of evaluations; empty: the first that there is
    std::string average;              ///< `tasks`: a name of task_averages.h; empty: the paper's whose tasks these are
    std::optional<std::int64_t> length;  ///< of evaluations: context length; `cost`: tokens of the table
    bool measure = false;                ///< `cost`: whoever makes the inputs measures, too
    CostOf cost_of = CostOf::mixers;     ///< `cost`
    /// `cost`: whoever makes the inputs counts these; "all": all that have a cost; empty: chosen_costs() of the models.
    std::vector<std::string> mixers;
    /// `retention`: the models that scores and sizes are compared with, and that elasticity is.
    std::string baseline, smallest;
    /// `tensors`: names, or patterns with * and ?, for whoever makes the inputs.
    std::vector<std::string> tensors;
    std::string words;               ///< `hash`: a text, whose words the given hashes take
    std::vector<std::string> names;  ///< of the files, in their order; empty, or an empty one: analysis_labels()
    std::optional<std::int64_t> batch, tensor_parallel, bytes;  ///< `cost`: of whoever makes the inputs
    bool log_loss = false;                                      ///< `loss` of runs: both axes logarithmic
    bool perplexity = false;                                    ///< `loss` of runs: exp of the loss
    std::optional<double> from_x, to_x;  ///< `loss` of runs: the part of the axis, in steps, tokens or seconds

    bool operator==(const FigureOptions&) const = default;
};

/// What a figure is made of: files of one kind. A record's name is what legends say.
struct FigureInputs {
    std::vector<std::shared_ptr<store::AnalysisFile>> analyses;
    std::vector<std::shared_ptr<const store::RunRecord>> runs;
    std::vector<std::shared_ptr<const store::Evaluation>> evaluations;
    std::vector<CostModel> models;
    std::vector<TensorSpread> tensors;
    std::vector<NamedHash> hashes;

    bool empty() const {
        return analyses.empty() && runs.empty() && evaluations.empty() && models.empty() && tensors.empty() &&
               hashes.empty();
    }
};

struct RecipeInfo {
    std::string name, description, needs;
    bool of_analyses = false, of_runs = false, of_evaluations = false, of_models = false, of_tensors = false,
         of_hashes = false;
};
std::vector<RecipeInfo> recipes();

/// Throws Error (usage) for an unknown recipe, naming the known ones, when a file lacks what the recipe needs, and for
/// files of a kind that the recipe is not of.
FigureData make_figure(const std::string& recipe, const FigureInputs& inputs, const FigureOptions& options);
/// The same of analyses alone.
FigureData make_figure(const std::string& recipe, std::span<const std::shared_ptr<store::AnalysisFile>> files,
                       const FigureOptions& options);

/// The figure's numbers as CSV (RFC 4180), one observation per row, in full precision.
std::string figure_csv(const FigureData& figure);

}  // namespace headscope::figures
