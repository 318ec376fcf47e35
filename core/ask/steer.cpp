// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/steer.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include "core/ask/answers.h"
#include "core/ask/cells.h"
#include "core/ask/sweep.h"
#include "core/base/error.h"
#include "core/model/model.h"

namespace headscope::ask {
namespace {

using model::Point;
using model::PointKey;
using SteeringVectors = std::map<std::int64_t, at::Tensor>;

constexpr const char* kSteeringVector = "/steer/vector";
constexpr const char* kSteeredValue = "/steer/value";

struct SteeredRun {
    std::int64_t layer = 0;
    double factor = 0;
    std::size_t cell = 0;
};

/// Row b of a batch has factor x vector added to the output of run b's layer, at all positions.
class SteerEditor final : public model::Editor {
public:
    SteerEditor(const std::vector<SteeredRun>& runs, const SteeringVectors& vectors)
        : runs_(&runs), vectors_(&vectors) {}

    bool edits(const PointKey& key) const override {
        return key.point == Point::hidden &&
               std::any_of(runs_->begin(), runs_->end(), [&](const SteeredRun& one) { return one.layer == key.layer; });
    }

    at::Tensor edit(const model::EditPlace& place, const at::Tensor& value) override {
        at::Tensor changed = value.clone();
        for (std::size_t b = 0; b < runs_->size(); ++b) {
            const SteeredRun& one = (*runs_)[b];
            if (one.layer != place.key.layer) continue;
            const at::Tensor vector = vectors_->at(one.layer).to(value.scalar_type());
            changed.select(0, static_cast<std::int64_t>(b)).add_(vector, one.factor);
        }
        return changed;
    }

private:
    const std::vector<SteeredRun>* runs_;
    const SteeringVectors* vectors_;
};

class Steering {
public:
    static constexpr const char* kBaseline = "/steer/baseline";

    Steering(model::Model& model, const SteerOptions& options, store::AskRecord& record)
        : model_(model), options_(options), record_(record), layers_(model.config().all_layers()) {
        check();
        record.add_dimension("/channel", model.config().hidden, "channel of the residual stream, counted from 0");
        record.add_dimension("/factor", std::ssize(options.factors), "factor, counted from 0: /steer/factor has it");
        if (!record.tables.empty()) return;
        record.add_table("/steer/factor", {"/factor"}, "factor of the vector").values = options.factors;
        record.add_table(kSteeringVector, {"/layer", "/channel"},
                         "mean of the positive texts less that of the negative ones");
        record.add_table(kBaseline, {"/sequence"}, "metric of the run that is not steered");
        record.add_table(kSteeredValue, {"/sequence", "/layer", "/factor"},
                         "metric with factor times the vector added to the layer's output");
    }

    void find_vectors(const Cancellation& cancellation) {
        store::AskTable& table = answer_table(record_, kSteeringVector);
        const std::int64_t size = model_.config().hidden;
        if (!has_numbers(table.values)) {
            const SteeringVectors found = options_.positive.empty() ? options_.vectors : differences(cancellation);
            for (const auto& [layer, vector] : found) {
                const at::Tensor row = vector.to(at::kDouble).contiguous();
                std::copy_n(row.const_data_ptr<double>(), size, table.values.begin() + layer * size);
            }
        }
        vectors_ = steering_vectors(record_);
        for (const std::int64_t layer : options_.layers)
            if (!vectors_.contains(layer))
                throw Error(ErrorCode::usage, "--layers", "expected layers with a vector",
                            "found " + std::to_string(layer));
    }

    std::int64_t runs_of_vectors() const { return std::ssize(options_.positive) + std::ssize(options_.negative); }

    /// Runs of a text that have no number yet, by layer.
    std::vector<SteeredRun> open(std::int64_t s) const {
        const store::AskTable& table = record_.table(kSteeredValue);
        std::vector<SteeredRun> runs;
        for (const auto& [layer, vector] : vectors_) {
            const auto& chosen = options_.layers;
            if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), layer) == chosen.end()) continue;
            for (std::int64_t f = 0; f < std::ssize(options_.factors); ++f) {
                const std::size_t cell = cell_of(record_, table, {s, layer, f});
                if (std::isnan(table.values[cell]))
                    runs.push_back({layer, options_.factors[static_cast<std::size_t>(f)], cell});
            }
        }
        return runs;
    }

    void sequence(std::int64_t s, const Cancellation& cancellation, const std::function<void()>& step) {
        const TextInput text = text_input(record_.sequences[static_cast<std::size_t>(s)]);
        double baseline = 0;
        const Measure measure =
            measure_from_run(model_, options_.metric, text, options_.editor, cancellation, baseline);
        put(record_, kBaseline, {s}, baseline);
        each_batch(open(s), text.tokens(), cancellation, [&](const std::vector<SteeredRun>& some) {
            SteerEditor editor(some, vectors_);
            const std::vector<double> found =
                measure_rows(model_, text, std::ssize(some), {options_.editor, &editor}, measure, cancellation);
            for (std::size_t i = 0; i < some.size(); ++i) {
                answer_table(record_, kSteeredValue).values[some[i].cell] = found[i];
                step();
            }
        });
    }

private:
    void check() const {
        options_.metric.check(model_);
        options_.metric.check_texts(record_.sequences);
        const auto refuse = [](const char* option, const std::string& expected, const std::string& found) {
            throw Error(ErrorCode::usage, option, "expected " + expected, "found " + found);
        };
        if (options_.factors.empty()) refuse("--factors", "factors", "none");
        if (options_.positive.empty() != options_.negative.empty())
            refuse("ask steer", "positive and negative texts", "one of them");
        if (options_.positive.empty() == options_.vectors.empty())
            refuse("ask steer", "either positive and negative texts or --vector",
                   options_.vectors.empty() ? "none" : "both");
        for (const auto& [layer, vector] : options_.vectors)
            if (layer < 0 || layer >= layers_ || vector.dim() != 1 || vector.size(0) != model_.config().hidden)
                refuse("--vector",
                       "vectors of " + std::to_string(model_.config().hidden) + " numbers for layers below " +
                           std::to_string(layers_),
                       std::to_string(vector.numel()) + " numbers for layer " + std::to_string(layer));
        for (const std::int64_t layer : options_.layers)
            if (layer < 0 || layer >= layers_)
                refuse("--layers", "layers from 0 to " + std::to_string(layers_ - 1), std::to_string(layer));
    }

    /// Mean over texts of one row each: [d] float64 by layer.
    SteeringVectors means(const std::vector<store::SequenceTokens>& texts, const Cancellation& cancellation) const {
        const auto places = model::places_of(Point::hidden, model_.config(), model_.sites());
        SteeringVectors sums;
        for (const store::SequenceTokens& text : texts) {
            cancellation.check();
            const RunValues values =
                record_run(model_, text_input(text), places, options_.editor, cancellation, nullptr);
            const c10::InferenceMode inference;
            for (const auto& [key, value] : values) {
                const at::Tensor rows = value[0].to(at::kDouble);
                const at::Tensor row = options_.at == SteerAt::last ? rows[rows.size(0) - 1] : rows.mean(0);
                at::Tensor& sum = sums[key.layer];
                sum = sum.defined() ? sum + row : row;
            }
        }
        const c10::InferenceMode inference;
        for (auto& [layer, sum] : sums) sum = sum / static_cast<double>(texts.size());
        return sums;
    }

    SteeringVectors differences(const Cancellation& cancellation) const {
        SteeringVectors vectors = means(options_.positive, cancellation);
        const SteeringVectors negative = means(options_.negative, cancellation);
        const c10::InferenceMode inference;
        for (auto& [layer, vector] : vectors) vector = vector - negative.at(layer);
        return vectors;
    }

    model::Model& model_;
    const SteerOptions& options_;
    store::AskRecord& record_;
    std::int64_t layers_;
    SteeringVectors vectors_;
};

}  // namespace

void run_steer(model::Model& model, const SteerOptions& options, store::AskRecord& record, Progress& progress,
               const Cancellation& cancellation) {
    Steering steering(model, options, record);
    const auto ahead = static_cast<double>(steering.runs_of_vectors());
    progress.advance(0, ahead + 1, "vectors");
    steering.find_vectors(cancellation);
    sweep_texts(steering, record, Steering::kBaseline, ahead, progress, options.saved, cancellation);
    record.complete = true;
}

std::map<std::int64_t, at::Tensor> steering_vectors(const store::AskRecord& record) {
    const store::AskTable& table = record.table(kSteeringVector);
    const std::int64_t size = record.size_of("/channel");
    SteeringVectors vectors;
    for (std::int64_t layer = 0; layer < record.size_of("/layer"); ++layer) {
        const auto begin = table.values.begin() + layer * size;
        const std::vector<double> row(begin, begin + size);
        if (!std::isnan(row.front())) vectors[layer] = at::tensor(row, at::kDouble).to(at::kFloat);
    }
    return vectors;
}

}  // namespace headscope::ask
