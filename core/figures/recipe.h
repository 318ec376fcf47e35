// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What every recipe shares. A recipe is one file recipe_<name>.cpp with one function, declared here, and one line in
// registry.cpp.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/site_name.h"
#include "core/figures/figure.h"
#include "core/store/analysis_file.h"

namespace headscope::figures {

using Files = std::span<const std::shared_ptr<store::AnalysisFile>>;

FigureData radar(Files files, const FigureOptions& options);
FigureData scores(Files files, const FigureOptions& options);
FigureData attention(Files files, const FigureOptions& options);
FigureData indicators(Files files, const FigureOptions& options);
FigureData thumbnails(Files files, const FigureOptions& options);
FigureData states(Files files, const FigureOptions& options);
FigureData experts(Files files, const FigureOptions& options);
FigureData loss(Files files, const FigureOptions& options);
FigureData text(Files files, const FigureOptions& options);
FigureData lines(Files files, const FigureOptions& options);
FigureData branch_weights(Files files, const FigureOptions& options);
FigureData bias(Files files, const FigureOptions& options);
FigureData offsets(Files files, const FigureOptions& options);
FigureData head_embeddings(Files files, const FigureOptions& options);
FigureData mass(Files files, const FigureOptions& options);
FigureData token_types(Files files, const FigureOptions& options);
FigureData difference(Files files, const FigureOptions& options);
FigureData hash(Files files, const FigureOptions& options);

// Of runs, evaluations and models: inputs of the one kind, at least one of them.
FigureData run_loss(const FigureInputs& inputs, const FigureOptions& options);
FigureData timeline(const FigureInputs& inputs, const FigureOptions& options);
FigureData context_perplexity(const FigureInputs& inputs, const FigureOptions& options);
FigureData position_perplexity(const FigureInputs& inputs, const FigureOptions& options);
FigureData ruler(const FigureInputs& inputs, const FigureOptions& options);
FigureData tasks(const FigureInputs& inputs, const FigureOptions& options);
FigureData latency(const FigureInputs& inputs, const FigureOptions& options);
FigureData ablation(const FigureInputs& inputs, const FigureOptions& options);
FigureData scaling(const FigureInputs& inputs, const FigureOptions& options);
FigureData retention(const FigureInputs& inputs, const FigureOptions& options);
FigureData cost(const FigureInputs& inputs, const FigureOptions& options);
/// What `cost` draws of the variants of multi-head attention.
FigureData variant_costs(const FigureInputs& inputs, const FigureOptions& options);
FigureData tensors(const FigureInputs& inputs, const FigureOptions& options);
FigureData hash_words(const FigureInputs& inputs, const FigureOptions& options);

/// What the second file of a difference is asked for: options.other_sequence, other_layer and other_head in the places
/// of sequence, layer and head, where they are given.
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

/// What the losses and logits of an analysis are about. Threads: any.
struct OutputKind {
    bool next = true;      ///< at a token: the one after it; else the token itself
    bool classes = false;  ///< logits are of classes, not of the vocabulary
    bool none = false;     ///< the model has no head
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

/// Of each head of a site whether so many of its weights are exactly 0 (kSparseHead, in the mean over those sequences)
/// that its thumbnail tells zeros from small weights.
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
