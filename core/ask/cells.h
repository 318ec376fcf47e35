// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Many edited runs of one text side by side: each row of a batch is the text with one edit of its own.
// Threads: the compute thread.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/ask/metric.h"
#include "core/base/progress.h"
#include "core/model/batch.h"
#include "core/model/edits/editor.h"

namespace headscope::ask {

/// Values of another run, each [1, ..].
using RunValues = std::map<model::PointKey, at::Tensor>;

/// One edit: a value of one place, of one head and position or all of them.
struct Cell {
    model::PointKey key;
    std::int64_t head = -1;      ///< -1: all
    std::int64_t position = -1;  ///< -1: all; of a matrix its query row
    std::int64_t column = -1;    ///< of a matrix: one key; -1: all
    std::int64_t from = -1;      ///< position in `values`; -1: the same
    enum class How : std::uint8_t { zero, mean, values } how = How::values;
    std::size_t result = 0;  ///< index in the results
};

/// Replaces row b's value as cell b says.
class CellEditor final : public model::Editor {
public:
    CellEditor(const std::vector<Cell>& cells, const RunValues* values) : cells_(&cells), values_(values) {}
    bool edits(const model::PointKey& key) const override;
    at::Tensor edit(const model::EditPlace& place, const at::Tensor& value) override;
    std::vector<std::int64_t> changed_heads(const model::PointKey& key) const override;

private:
    const std::vector<Cell>* cells_;
    const RunValues* values_;
};

/// Ids [L] of a text.
at::Tensor text_ids(const std::vector<std::int32_t>& ids);

/// A text as a model reads it.
struct TextInput {
    at::Tensor ids;       ///< [L]
    at::Tensor target{};  ///< [Lt], the decoder's input of an encoder-decoder; undefined: there is none

    /// The tokens whose successors the head predicts.
    const at::Tensor& predicted() const { return target.defined() ? target : ids; }
    std::int64_t tokens() const { return ids.size(0) + (target.defined() ? target.size(0) : 0); }
    /// The text `rows` times side by side.
    model::Batch batch(std::int64_t rows = 1) const;
};
TextInput text_input(const store::SequenceTokens& text);

/// True if rows of a value count tokens of the decoder's input, not those that an encoder reads; keys and values count
/// those that are attended to. False for a model of one stack.
bool counts_target(const model::PointKey& place, const model::Model& model);
/// The same of a matrix' columns.
bool keys_count_target(const model::PointKey& place, const model::Model& model);

/// Rows of a point's table: "/site" of values of heads, and of outputs of attentions where a layer has two of them (a
/// decoder behind an encoder); else "/layer".
std::string row_dimension(model::Point point, const model::Model& model);
/// Row of a place in it.
std::int64_t row_of(const model::PointKey& place, const model::Model& model);

/// Tokens of a batch of edited runs.
inline constexpr std::int64_t kCellTokens = 2048;

/// Calls work(part) for parts of `rows` that make batches of at most kCellTokens tokens with a text of `length` tokens
/// a row.
template <class Row, class Work>
void each_batch(const std::vector<Row>& rows, std::int64_t length, const Cancellation& cancellation, const Work& work) {
    const std::ptrdiff_t most = std::max<std::int64_t>(1, kCellTokens / length);
    for (auto first = rows.begin(); first != rows.end();) {
        cancellation.check();
        const auto end = first + std::min(most, rows.end() - first);
        work(std::vector<Row>(first, end));
        first = end;
    }
}

/// The metric of each of `rows` runs of a text in one batch, below `editors` (null ones are left out). Runs compute
/// what the metric reads (ForwardOptions::only_position).
std::vector<double> measure_rows(model::Model& model, const TextInput& text, std::int64_t rows,
                                 std::vector<model::Editor*> editors, const Measure& measure,
                                 const Cancellation& cancellation, std::set<int> skipped_layers = {});

/// Values of an unedited run of `length` tokens from which run_cells() starts: each layer's output, and the heads that
/// mixers return. Empty for models whose sweeps start at the embeddings, and where they take more than 64 MB.
std::vector<model::PointKey> places_ahead(const model::Model& model, std::int64_t length);

/// A metric whose reference is the run of `text` below `around` (null: no edits); `value` becomes that run's. `ahead`,
/// if given, gets the values of places_ahead() where nothing is edited.
Measure measure_from_run(model::Model& model, const Metric& metric, const TextInput& text, model::Editor* around,
                         const Cancellation& cancellation, double& value, RunValues* ahead = nullptr);

/// Runs `text` once per cell, in batches of at most kCellTokens tokens, below `around` (edits of every run; null:
/// none). Without `around`, layers before a batch's first edit are computed once for all cells, and so are the heads of
/// its layer if they are edited first; without edits behind it, the last layer computes the metric's one position
/// alone. `done` gets each result, in the order of the layers. `ahead`: values of places_ahead() in the unedited run,
/// which are then not computed again; null or incomplete: they are.
void run_cells(model::Model& model, const TextInput& text, const std::vector<Cell>& cells, const RunValues* values,
               const Measure& measure, model::Editor* around, const Cancellation& cancellation,
               const std::function<void(const Cell& cell, double value)>& done, const RunValues* ahead = nullptr);

/// The values of these places in a run of `text`, and its final hidden states in `hidden` [1, L, d].
RunValues record_run(model::Model& model, const TextInput& text, const std::vector<model::PointKey>& places,
                     model::Editor* around, const Cancellation& cancellation, at::Tensor* hidden);

}  // namespace headscope::ask
