// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/cells.h"

#include <algorithm>
#include <optional>
#include <set>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include "core/ask/parts.h"
#include "core/model/edits/intervention.h"
#include "core/model/model.h"
#include "core/store/analysis/analysis_header.h"

namespace headscope::ask {
namespace {

constexpr const char* kTargetStream = "target";  ///< Site::query_stream and key_stream of a decoder's own tokens

/// The part of one text's value [heads, L, size] or [L, d] that a cell means.
at::Tensor part_of(at::Tensor value, bool heads, const Cell& cell, std::int64_t position) {
    if (heads && cell.head >= 0) value = value.narrow(0, cell.head, 1);
    if (position >= 0) value = value.narrow(heads ? 1 : 0, position, 1);
    return cell.column < 0 ? value : value.narrow(2, cell.column, 1);
}

/// Starts passes in the middle: the stream [1, L, d] at the input of a layer in an unedited run takes the place of the
/// embeddings, and the layers before are skipped. Where the passes leave that layer's values up to its head output as
/// they are, its heads come from the unedited run, too. Memory holds one layer's values, or those given ahead.
class Prefix final : public model::Editor {
public:
    /// `ahead`: values of places_ahead() that are known; null: none.
    Prefix(model::Model& model, const at::Tensor& ids, const RunValues* ahead, const Cancellation& cancellation)
        : model_(&model), ids_(ids), ahead_(ahead), cancellation_(&cancellation) {}

    /// False for models whose layers read more than the stream before them: an encoder's output, the embeddings, or a
    /// guide stream, which passes through the same layers.
    static bool possible(const model::Model& model) {
        if (model.config().encoder) return false;
        for (const model::Layer* layer : stack_of(model).tower().layers())
            if (layer->source() != mixers::QueryKeySource::own) return false;
        return true;
    }

    /// Passes have these cells, none of which is in a layer before those of earlier calls.
    void start_at(const std::vector<Cell>& cells) {
        advance(cells.front().key.layer);
        const bool keeps_heads = std::all_of(cells.begin(), cells.end(), [this](const Cell& cell) {
            return cell.key.layer > layer_ || (cell.key.layer == layer_ && cell.key.point >= model::Point::head_output);
        });
        if (!keeps_heads)
            heads_ = at::Tensor();
        else if (!heads_.defined())
            store_heads();
    }

    std::set<int> skipped() const {
        std::set<int> layers;
        for (std::int64_t layer = 0; layer < layer_; ++layer) layers.insert(static_cast<int>(layer));
        return layers;
    }

    bool edits(const model::PointKey& key) const override { return layer_ > 0 && key.point == model::Point::embedding; }
    at::Tensor edit(const model::EditPlace&, const at::Tensor& value) override {
        return stream_.expand(value.sizes()).contiguous();
    }
    at::Tensor stored_heads(const model::PointKey& key) const override { return key == place_ ? heads_ : at::Tensor(); }

private:
    void advance(std::int64_t layer) {
        if (layer <= layer_) return;
        heads_ = at::Tensor();
        const model::PointKey last{model::Point::hidden, layer - 1, -1};
        stream_ = layer == layer_ + 1 && next_.defined() ? next_ : unedited({last}, layer).at(last);
        next_ = at::Tensor();
        layer_ = layer;
    }

    /// Runs the first layer once for its heads and for the stream behind it. Nothing for mixers that do more to heads.
    void store_heads() {
        const model::Layer* layer = stack_of(*model_).tower().layers().at(static_cast<std::size_t>(layer_));
        if (!layer->mixer || !layer->mixer->returns_heads()) return;
        const auto places = model::places_of(model::Point::head_output, model_->config(), model_->sites());
        const auto place = std::find_if(places.begin(), places.end(),
                                        [this](const model::PointKey& key) { return key.layer == layer_; });
        if (place == places.end()) return;
        place_ = *place;
        const model::PointKey last{model::Point::hidden, layer_, -1};
        const RunValues values = unedited({place_, last}, layer_ + 1);
        heads_ = values.at(place_);
        next_ = values.at(last);
    }

    /// Values of the unedited run in layers before `end`, from the first that passes run.
    RunValues unedited(std::set<model::PointKey> places, std::int64_t end) {
        if (ahead_ && std::all_of(places.begin(), places.end(),
                                  [this](const model::PointKey& key) { return ahead_->contains(key); })) {
            RunValues known;
            for (const model::PointKey& key : places) known[key] = ahead_->at(key);
            return known;
        }
        model::PointRecorder recorder(std::move(places));
        model::EditorChain both({this, &recorder});
        model::Batch batch;
        batch.ids = ids_.unsqueeze(0);
        model::ForwardOptions options;
        options.editor = &both;
        options.cancellation = cancellation_;
        options.skip_layers = skipped();
        for (std::int64_t later = end; later < model_->config().layers; ++later)
            options.skip_layers.insert(static_cast<int>(later));
        model_->forward(batch, options);
        return std::move(recorder.values);
    }

    model::Model* model_;
    at::Tensor ids_;
    const RunValues* ahead_;
    const Cancellation* cancellation_;
    std::int64_t layer_ = 0;
    at::Tensor stream_;      ///< input of layer_; undefined at layer 0
    at::Tensor next_;        ///< its output; undefined: not known
    at::Tensor heads_;       ///< its head output; undefined: not in use
    model::PointKey place_;  ///< of these heads
};

/// A batch of at least this number of tokens ends with its layer: its products run at full speed, and the next batch
/// starts at a later layer.
constexpr std::int64_t kLayerTokens = 512;

/// Cells in the order of their layers, parted into those that share batches.
std::vector<std::vector<Cell>> parted(const std::vector<Cell>& cells, std::int64_t length) {
    std::vector<std::vector<Cell>> parts;
    for (const Cell& cell : cells) {
        const bool ends = !parts.empty() && parts.back().back().key.layer != cell.key.layer &&
                          std::ssize(parts.back()) * length >= kLayerTokens;
        if (parts.empty() || ends) parts.emplace_back();
        parts.back().push_back(cell);
    }
    return parts;
}

/// Bytes of values that a run stores ahead of a sweep, at most. Above it the sweep runs each layer again.
constexpr double kAheadBytes = 64 << 20;

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

std::vector<std::int64_t> CellEditor::changed_heads(const model::PointKey& key) const {
    std::vector<std::int64_t> heads;
    for (const Cell& cell : *cells_) {
        if (cell.key == key && cell.head < 0) return {};
        heads.push_back(cell.key == key ? cell.head : -1);
    }
    return heads;
}

at::Tensor text_ids(const std::vector<std::int32_t>& ids) {
    return at::tensor(std::vector<std::int64_t>(ids.begin(), ids.end()), at::kLong);
}

model::Batch TextInput::batch(std::int64_t rows) const {
    const auto repeated = [rows](const at::Tensor& one) {
        return one.unsqueeze(0).expand({rows, one.size(0)}).contiguous();
    };
    model::Batch made;
    made.ids = repeated(ids);
    if (target.defined()) made.target = repeated(target);
    return made;
}

TextInput text_input(const store::SequenceTokens& text) {
    TextInput input{text_ids(text.ids)};
    if (text.target) input.target = text_ids(text.target->ids);
    return input;
}

bool counts_target(const model::PointKey& place, const model::Model& model) {
    const auto& encoder = model.config().encoder;
    if (!encoder) return false;
    if (!model::is_of_site(place.point)) return place.layer < 0 || place.layer >= encoder->layers;
    const Site& site = model.sites().at(static_cast<std::size_t>(place.site));
    const bool of_keys = place.point == model::Point::key || place.point == model::Point::value;
    return (of_keys ? site.key_stream : site.query_stream) == kTargetStream;
}

bool keys_count_target(const model::PointKey& place, const model::Model& model) {
    return model.config().encoder && model.sites().at(static_cast<std::size_t>(place.site)).key_stream == kTargetStream;
}

std::string row_dimension(model::Point point, const model::Model& model) {
    const bool two = model.config().encoder && model::is_of_site(point);
    return model::has_heads(point) || two ? "/site" : "/layer";
}

std::int64_t row_of(const model::PointKey& place, const model::Model& model) {
    return row_dimension(place.point, model) == "/site" ? place.site : std::max<std::int64_t>(0, place.layer);
}

std::vector<double> measure_rows(model::Model& model, const TextInput& text, std::int64_t rows,
                                 std::vector<model::Editor*> editors, const Measure& measure,
                                 const Cancellation& cancellation, std::set<int> skipped_layers) {
    model::EditorChain chain(std::move(editors));
    const model::Batch batch = text.batch(rows);
    model::ForwardOptions options;
    options.editor = &chain;
    options.cancellation = &cancellation;
    options.skip_layers = std::move(skipped_layers);
    options.only_position = measure.only_position(text.predicted().size(0));
    return measure.values(batch.predicted(), model.forward(batch, options));
}

std::vector<model::PointKey> places_ahead(const model::Model& model, std::int64_t length) {
    if (!Prefix::possible(model)) return {};
    const std::vector<const model::Layer*> layers = stack_of(model).tower().layers();
    std::vector<model::PointKey> places = model::places_of(model::Point::hidden, model.config(), model.sites());
    double numbers = static_cast<double>(places.size()) * static_cast<double>(model.config().hidden);
    for (const model::PointKey& key : model::places_of(model::Point::head_output, model.config(), model.sites())) {
        const model::Layer* layer = layers.at(static_cast<std::size_t>(key.layer));
        if (!layer->mixer || !layer->mixer->returns_heads()) continue;
        const Site& site = model.sites().at(static_cast<std::size_t>(key.site));
        numbers += static_cast<double>(site.heads) * static_cast<double>(site.value_size);
        places.push_back(key);
    }
    if (numbers * static_cast<double>(length) * sizeof(float) > kAheadBytes) places.clear();
    return places;
}

Measure measure_from_run(model::Model& model, const Metric& metric, const TextInput& text, model::Editor* around,
                         const Cancellation& cancellation, double& value, RunValues* ahead) {
    Measure measure(model, metric);
    at::Tensor hidden;
    std::vector<model::PointKey> places;
    if (ahead && !around) places = places_ahead(model, text.tokens());
    RunValues values = record_run(model, text, places, around, cancellation, &hidden);
    if (ahead) *ahead = std::move(values);
    measure.set_reference(hidden);
    value = measure.values(text.predicted().unsqueeze(0), hidden)[0];
    return measure;
}

void run_cells(model::Model& model, const TextInput& text, const std::vector<Cell>& cells, const RunValues* values,
               const Measure& measure, model::Editor* around, const Cancellation& cancellation,
               const std::function<void(const Cell& cell, double value)>& done, const RunValues* ahead) {
    std::vector<Cell> ordered = cells;
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const Cell& a, const Cell& b) { return a.key.layer < b.key.layer; });
    std::optional<Prefix> prefix;
    if (ordered.size() > 1 && around == nullptr && Prefix::possible(model))
        prefix.emplace(model, text.ids, ahead, cancellation);
    const auto run = [&](const std::vector<Cell>& some) {
        CellEditor editor(some, values);
        if (prefix) prefix->start_at(some);
        const std::vector<double> found =
            measure_rows(model, text, std::ssize(some), {prefix ? &*prefix : nullptr, around, &editor}, measure,
                         cancellation, prefix ? prefix->skipped() : std::set<int>());
        for (std::size_t i = 0; i < some.size(); ++i) done(some[i], found[i]);
    };
    if (!prefix) return each_batch(ordered, text.tokens(), cancellation, run);
    for (const std::vector<Cell>& part : parted(ordered, text.tokens()))
        each_batch(part, text.tokens(), cancellation, run);
}

RunValues record_run(model::Model& model, const TextInput& text, const std::vector<model::PointKey>& places,
                     model::Editor* around, const Cancellation& cancellation, at::Tensor* hidden) {
    model::PointRecorder recorder(std::set<model::PointKey>(places.begin(), places.end()));
    model::EditorChain both({around, &recorder});
    const model::Batch batch = text.batch();
    model::ForwardOptions options;
    options.editor = &both;
    options.cancellation = &cancellation;
    const at::Tensor last = model.forward(batch, options);
    if (hidden) *hidden = last;
    return std::move(recorder.values);
}

}  // namespace headscope::ask
