// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/cells.h"

#include <algorithm>
#include <optional>
#include <set>

#include <ATen/TensorOperators.h>
#include <c10/core/InferenceMode.h>

#include "core/ask/parts.h"
#include "core/model/edits/intervention.h"
#include "core/model/model.h"

namespace headscope::ask {
namespace {

/// The part of one text's value [heads, L, size] or [L, d] that a cell means.
at::Tensor part_of(at::Tensor value, bool heads, const Cell& cell, std::int64_t position) {
    if (heads && cell.head >= 0) value = value.narrow(0, cell.head, 1);
    if (position >= 0) value = value.narrow(heads ? 1 : 0, position, 1);
    return cell.column < 0 ? value : value.narrow(2, cell.column, 1);
}

/// Streams [1, L, d] at the input of every layer of an unedited run, from which an edited one may start.
class Prefixes {
public:
    Prefixes(model::Model& model, const at::Tensor& ids, const Cancellation& cancellation) {
        const auto layers = model::places_of(model::Point::residual_before, model.config(), model.sites());
        streams_ = record_run(model, ids, layers, nullptr, cancellation, nullptr);
    }

    /// False for models whose layers read more than the stream before them.
    static bool possible(const model::Model& model) {
        if (model.config().encoder) return false;
        for (const model::Layer* layer : stack_of(model).tower().layers())
            if (layer->source() == mixers::QueryKeySource::embedding) return false;
        return true;
    }

    const at::Tensor& before(std::int64_t layer) const {
        return streams_.at({model::Point::residual_before, layer, -1});
    }

private:
    RunValues streams_;
};

/// Replaces the embeddings by a stream; with the layers before it skipped, a pass starts in the middle.
class PrefixEditor final : public model::Editor {
public:
    explicit PrefixEditor(const at::Tensor& stream) : stream_(&stream) {}
    bool edits(const model::PointKey& key) const override { return key.point == model::Point::embedding; }
    at::Tensor edit(const model::EditPlace&, const at::Tensor& value) override {
        return stream_->expand(value.sizes()).contiguous();
    }

private:
    const at::Tensor* stream_;
};

}  // namespace

bool CellEditor::edits(const model::PointKey& key) const {
    return std::any_of(cells_->begin(), cells_->end(), [&](const Cell& cell) { return cell.key == key; });
}

at::Tensor CellEditor::edit(const model::EditPlace& place, const at::Tensor& value) {
    const bool heads = model::has_heads(place.key.point);
    at::Tensor changed = value.clone();
    for (std::size_t b = 0; b < cells_->size(); ++b) {
        const Cell& cell = (*cells_)[b];
        if (cell.key != place.key) continue;
        const auto row = static_cast<std::int64_t>(b);
        const at::Tensor part = part_of(changed.select(0, row), heads, cell, cell.position);
        if (cell.how == Cell::How::zero) {
            part.zero_();
        } else if (cell.how == Cell::How::mean) {
            const std::int64_t axis = heads ? 1 : 0;
            part.copy_(part_of(value.select(0, row), heads, cell, -1).to(at::kDouble).mean(axis, true));
        } else {
            const std::int64_t from = cell.from >= 0 ? cell.from : cell.position;
            part.copy_(part_of(values_->at(place.key).select(0, 0), heads, cell, from));
        }
    }
    return changed;
}

void run_cells(model::Model& model, const at::Tensor& ids, const std::vector<Cell>& cells, const RunValues* values,
               const Measure& measure, model::Editor* around, const Cancellation& cancellation,
               const std::function<void(const Cell& cell, double value)>& done) {
    const std::int64_t length = ids.size(0);
    const auto step = static_cast<std::size_t>(std::max<std::int64_t>(1, kCellTokens / length));
    std::vector<Cell> ordered = cells;
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const Cell& a, const Cell& b) { return a.key.layer < b.key.layer; });
    std::optional<Prefixes> prefixes;
    const bool deep = !ordered.empty() && ordered.back().key.layer > 0 && ordered.size() > 1;
    if (deep && around == nullptr && Prefixes::possible(model)) prefixes.emplace(model, ids, cancellation);
    for (std::size_t first = 0; first < ordered.size(); first += step) {
        cancellation.check();
        const std::vector<Cell> some(
            ordered.begin() + static_cast<std::ptrdiff_t>(first),
            ordered.begin() + static_cast<std::ptrdiff_t>(std::min(first + step, ordered.size())));
        CellEditor editor(some, values);
        std::vector<model::Editor*> editors;
        const std::int64_t layer = some.front().key.layer;
        std::optional<PrefixEditor> prefix;
        if (prefixes && layer > 0) editors.push_back(&prefix.emplace(prefixes->before(layer)));
        if (around) editors.push_back(around);
        editors.push_back(&editor);
        model::EditorChain both(editors);
        model::Batch batch;
        batch.ids = ids.unsqueeze(0).expand({std::ssize(some), length}).contiguous();
        model::ForwardOptions options;
        options.editor = &both;
        options.cancellation = &cancellation;
        if (prefix)
            for (std::int64_t skipped = 0; skipped < layer; ++skipped)
                options.skip_layers.insert(static_cast<int>(skipped));
        const at::Tensor hidden = model.forward(batch, options);
        const std::vector<double> found = measure.values(batch.ids, hidden);
        for (std::size_t i = 0; i < some.size(); ++i) done(some[i], found[i]);
    }
}

RunValues record_run(model::Model& model, const at::Tensor& ids, const std::vector<model::PointKey>& places,
                     model::Editor* around, const Cancellation& cancellation, at::Tensor* hidden) {
    model::PointRecorder recorder(std::set<model::PointKey>(places.begin(), places.end()));
    model::EditorChain both(around ? std::vector<model::Editor*>{around, &recorder}
                                   : std::vector<model::Editor*>{&recorder});
    model::Batch batch;
    batch.ids = ids.unsqueeze(0);
    model::ForwardOptions options;
    options.editor = &both;
    options.cancellation = &cancellation;
    const at::Tensor last = model.forward(batch, options);
    if (hidden) *hidden = last;
    return std::move(recorder.values);
}

}  // namespace headscope::ask
