// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/figures/figure_data.h"

namespace headscope::figures {

/// How the values of an indicator become colours: as they are, by their range over everything in the figure, or by the
/// range of each layer.
enum class Normalise { absolute, minmax, layer };

/// How weights become colours. by_length: square root for short texts, logarithmic for long ones. row_rank: each
/// weight's rank among those of its row, from 0 to 1.
enum class CellScale { by_length, linear, logarithmic, square_root, row_rank };

/// Values of a map: weights after the normalizer, scores before it, the length of a key's contribution to a query
/// (core/maps/norm_map.h; of a head, or of a layer's heads together), rollout (core/maps/rollout.h). implicit: the
/// weights of a recurrent layer (core/maps/implicit_map.h); not an option by name.
enum class MapValues { weights, logits, norms, layer_norms, rollout, implicit };

/// One map of a layer, not one of each head.
inline bool of_layer(MapValues values) {
    return values == MapValues::layer_norms || values == MapValues::rollout;
}
inline bool of_norms(MapValues values) {
    return values == MapValues::norms || values == MapValues::layer_norms;
}

/// Values that color a text: weights of a chosen query, weights on a chosen key, mean weight on each key, loss of each
/// token.
enum class TextColour { automatic, weights, lookers, mass, loss };

/// End of a text's color scale: its largest value, or 1.
enum class ColourRange { largest, one };

/// Which attention of a model with several: the encoder's, the decoder's to itself, the decoder's to the encoder; of a
/// layer with two branches the softmax or the linear one.
enum class Tower { any, encoder, decoder, cross, softmax, linear };

/// Units of a map's rows and columns.
enum class Units { pieces, words };

/// Scores before the softmax, weights after it, or both.
enum class Stage { before, after, both };

/// Axis of a run's curves.
enum class Against { step, tokens, time };

/// In the place of a head: the mean over those of the layer.
inline constexpr std::int64_t kMeanOfHeads = -1;

/// Content of the figure `cost`: token mixing by length; weights of a sublayer of the variants of multi-head attention
/// by its heads; those of stacks.
enum class CostOf { mixers, sublayer, stacks };

/// The user's choices; figure_options.h has their names and checks.
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
    bool sides = false;                           ///< maps of `difference`: both maps, too
    std::optional<double> least;                  ///< `lines`: smaller weights are not drawn
    ScaleKind distance = ScaleKind::logarithmic;  ///< `bias`: that axis; or linear
    bool scale_per_head = false;                  ///< `thumbnails`: each up to its own highest value
    Stage stage = Stage::before;                  ///< `logits`
    std::optional<std::int64_t> step;             ///< `timeline`: radar and thumbnails at the last probe up to it
    /// Width of the running mean, 1: none. `loss` of runs: steps; `position-perplexity`: buckets.
    std::optional<std::int64_t> smooth;
    Against against = Against::step;  ///< `loss` of runs, `timeline`
    std::string task, metric;         ///< of evaluations; empty: the first that there is
    std::string significance;         ///< `tasks`: model that is compared with the best of the others; empty: none
    std::string average;              ///< `tasks`: a name of task_averages.h; empty: the paper's whose tasks these are
    std::optional<std::int64_t> length;  ///< of evaluations: context length; `cost`: tokens of the table
    bool measure = false;                ///< `cost`: the maker of the inputs measures, too
    CostOf cost_of = CostOf::mixers;     ///< `cost`
    /// `cost`: mixers that the maker of the inputs counts; "all": all with a cost; empty: chosen_costs() of the models.
    std::vector<std::string> mixers;
    /// `retention`, `benchmark`: the models that scores and sizes are compared with, and that elasticity is.
    std::string baseline, smallest;
    std::string set;  ///< `benchmark`: a name of benchmark_sets.h
    /// `tensors`: names, or patterns with * and ?, for the maker of the inputs.
    std::vector<std::string> tensors;
    std::string site;                  ///< figures of ask patch: a point; empty: all
    std::string show = "probability";  ///< `lens`
    std::string x, y;                  ///< `corpus-scatter`: measures of heads; empty: distance, induction
    std::string matrix = "ov";         ///< `circuits`
    bool normalized = false;           ///< figures of ask patch: shares of the clean run's effect
    std::string words;                 ///< `hash`: a text, whose words the given hashes take
    /// Names of the files, in their order, or of the models of evaluations (EvaluationGroups); empty, or an empty one:
    /// analysis_labels().
    std::vector<std::string> names;
    std::optional<std::int64_t> batch, tensor_parallel, bytes;  ///< `cost`: for the maker of the inputs
    bool log_loss = false;                                      ///< `loss` of runs: both axes logarithmic
    bool perplexity = false;                                    ///< `loss` of runs: exp of the loss
    std::optional<double> from_x, to_x;  ///< `loss` of runs: the part of the axis, in steps, tokens or seconds

    bool operator==(const FigureOptions&) const = default;
};

}  // namespace headscope::figures
