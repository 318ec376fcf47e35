// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Heat maps of the tables of an ask file, shared by its recipes.

#include <cstdint>
#include <string>
#include <vector>

#include "core/figures/recipe.h"
#include "core/store/ask/ask_file.h"

namespace headscope::figures {

/// The one file of a figure; throws usage for several and for another tool's.
const store::AskRecord& ask_record(const FigureInputs& inputs, const std::string& figure, const std::string& tool);

/// A table without its text axis: of --sequence, else of the only text, or the mean over texts (of tables by token: the
/// first text).
struct AskValues {
    std::vector<std::int64_t> shape;  ///< without the texts
    std::vector<double> values;
    std::int64_t sequence = 0;  ///< -1: mean over all
};
AskValues ask_values(const store::AskRecord& record, const store::AskTable& table, const FigureOptions& options);

/// A measure of heads of ask corpus, [n, H]: of all texts, or in mean/ and std/ of an indicator. Not sums and counts.
bool is_corpus_measure(const store::AskTable& table);

/// The table less the unedited run's metric, text by text. `baseline`: a table [texts].
store::AskTable ask_change(const store::AskRecord& record, const std::string& path, const std::string& baseline);

/// rows x columns cells. `centre`: the value of the neutral color of a diverging scale; NaN: a sequential one.
Panel ask_panel(const AskValues& cells, const std::string& label, double centre);

/// Positions with their tokens.
void set_token_axis(Axis& axis, const store::SequenceTokens& text);
/// The same of a text; without tokens where it has a target, which some rows count.
void set_token_axis(Axis& axis, const store::AskRecord& record, std::int64_t sequence);
/// Labels "3", "decoder 3 cross" of sites, as ticks of rows. A click on a row selects its site.
void set_site_axis(Axis& axis, const store::AskRecord& record);
/// Numbers as ticks. Of the label "Head" they are heads: a click selects them.
void set_layer_axis(Axis& axis, std::int64_t layers, const std::string& label = "Layer");
/// The sites of a layer: several where it has several attentions.
Subject of_layer(const store::AskRecord& record, std::int64_t layer);
/// After set_layer_axis(): a click on a layer selects its site.
void set_layer_subjects(Axis& axis, const store::AskRecord& record);
/// The layers of dots: as a heat map's columns, with room at both ends.
void set_layer_range(Axis& axis, std::int64_t layers);

/// A token of the file's tables as text: "␣the"; "#464" where the file has none.
std::string ask_word(const store::AskRecord& record, double id);

/// An option of the command line that made the file; `otherwise` where it was not stored.
std::string ask_setting(const store::AskRecord& record, const std::string& name, const std::string& otherwise);

/// "logit difference", "loss, nat": the metric that the file was made with.
std::string metric_label(const store::AskRecord& record);

/// "text 0 (12 tokens)" or "mean of 3 texts", and the model.
std::vector<std::string> ask_notes(const store::AskRecord& record, const AskValues& values);

/// One row per cell: the names of the axes, then `value`.
Table ask_table(const store::AskRecord& record, const store::AskTable& table);

}  // namespace headscope::figures
