// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Functions that recipes share. A recipe is a file recipes/recipe_<name>.cpp that ends in one `extern const Recipe`,
// and a line of recipes/list.inc.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/site_name.h"
#include "core/figures/make_figure.h"
#include "core/store/analysis/analysis_file.h"

namespace headscope::figures {

using Files = std::span<const std::shared_ptr<store::AnalysisFile>>;

// Called from the file of another recipe.
FigureData run_loss(const FigureInputs& inputs, const FigureOptions& options);
FigureData series_timeline(const FigureInputs& inputs, const FigureOptions& options);
FigureData variant_costs(const FigureInputs& inputs, const FigureOptions& options);

/// Options of the second file of a difference: options.other_sequence, other_layer and other_head in place of sequence,
/// layer and head, if given.
FigureOptions minuend_options(const FigureOptions& options);

/// The sequence asked for, checked against the file. Throws Error (usage), also for all of them.
std::int64_t chosen_sequence(const store::AnalysisFile& file, const FigureOptions& options);

/// The same, or all of them: for recipes that take means over sequences.
std::vector<std::int64_t> chosen_sequences(const store::AnalysisFile& file, const FigureOptions& options);

/// Mean and standard deviation (divisor n - 1; NaN for one value) of the values that are not NaN.
struct Moments {
    double mean = 0, deviation = 0;
};
Moments moments(std::span<const double> values);

/// Sites to draw: those of the layer asked for, or all. Throws Error (usage) when the file has no such layer.
std::vector<std::int64_t> chosen_sites(const store::AnalysisFile& file, const FigureOptions& options);

/// The option --tower that leaves a layer this site alone; any: the model has one stack of layers, and this layer one
/// attention.
Tower tower_of(std::span<const Site> sites, std::int64_t site);

/// Throws Error (usage) when `options` names a head that `site` lacks.
void check_head(const store::AnalysisFile& file, std::int64_t site, const FigureOptions& options);

/// Names of a file's site (core/base/site_name.h): "decoder 3 cross"; "decoder layer 3, cross-attention".
using headscope::site_label, headscope::site_title;
std::string site_label(const store::AnalysisFile& file, std::int64_t site);
std::string site_title(const store::AnalysisFile& file, std::int64_t site);
/// The title of the site that --layer and --tower leave alone; "layer 3" or "every layer" where they leave several.
std::string chosen_title(const store::AnalysisFile& file, const FigureOptions& options);

/// Kind of an analysis's losses and logits. Threads: any.
struct OutputKind {
    bool next = true;                        ///< at a token: the one after it; else the token itself
    bool classes = false;                    ///< logits are of classes, not of the vocabulary
    bool none = false;                       ///< the model has no head
    std::vector<std::string> class_names{};  ///< core/base/class_names.h
};
OutputKind output_kind(const store::AnalysisHeader& header);

/// A name for each file: options.names, or where one is empty analysis_labels(). A file that is given twice has one
/// name. Throws Error (usage) for another number of names than files.
std::vector<std::string> file_labels(Files files, const FigureOptions& options);

/// The file's name as errors give it.
std::string file_name(const store::AnalysisFile& file);

/// A thumbnail does not know what a window hides: a few weights of a softmax that underflow must not colour all of
/// that.
inline constexpr double kSparseHead = 0.01;

/// True for each head of a site in which at least kSparseHead of the weights are exactly 0 (in the mean over those
/// sequences), so that its thumbnail sets zeros apart from small weights.
std::vector<bool> heads_with_zeros(const store::AnalysisFile& file, std::int64_t site,
                                   std::span<const std::int64_t> sequences);

/// Sets zero_apart of a scale of weights where some value is exactly 0.
void set_zero_apart(ColourScale& scale, std::span<const float> values);

/// "sequence 0 (512 tokens)" of the chosen sequence, the model, and "partial file: ..." where it is one. The second of
/// the files may be the first again, with another sequence (minuend_options()).
std::vector<std::string> source_notes(Files files, const FigureOptions& options);

/// At most about `most` points: of each stretch of the curve its least and greatest value stay, so that no peak is
/// lost. Errors stay at no more than `most_errors` of them.
Curve thinned(Curve curve, std::size_t most, std::size_t most_errors = 40);

/// Colours for `count` members of a row: categorical ones where there are enough, shades of the sequential map beyond.
void colour_member(Curve& curve, std::size_t index, std::size_t count);

/// The legend of such a row: every member, or some of a long one.
std::vector<LegendEntry> member_legend(const std::vector<std::string>& names);

/// Four significant digits at most, as a reader would write it; "–" for NaN.
std::string short_number(double value, int digits = 3);

/// "weights below 1e-4 are drawn as 1e-4.": of a logarithmic color scale.
std::string smallest_note(const std::string& values, double smallest);

/// 999, 12.3k, 4.5M.
std::string short_count(double count);

}  // namespace headscope::figures
