// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/approximate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "core/ask/answers.h"
#include "core/ask/gradients.h"
#include "core/base/error.h"
#include "core/model/edits/intervention.h"
#include "core/model/model.h"

namespace headscope::ask {
namespace {

using model::Point;
using model::PointKey;

std::string path_of(const char* group, Point point) {
    return std::string("/patch/") + group + "/" + std::string(model::name(point));
}

/// Ranks from 1, ties averaged.
std::vector<double> ranks(const std::vector<double>& values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return values[i] < values[j]; });
    std::vector<double> found(values.size());
    for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
        while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
        for (std::size_t i = first; i < last; ++i) found[order[i]] = (static_cast<double>(first + last) + 1) / 2;
    }
    return found;
}

class Approximation {
public:
    Approximation(model::Model& model, const PatchOptions& options, const ApproximateOptions& approximate,
                  store::AskRecord& record)
        : model_(model), options_(options), approximate_(approximate), record_(record) {
        const auto add = [&](const char* group, Point point, const char* long_name) {
            const std::string path = path_of(group, point);
            if (!record.find(path))
                record.add_table(path, std::vector<std::string>(record.table(path_of("value", point)).dimensions),
                                 long_name);
        };
        for (const Point point : options.points)
            if (approximate.attribution) add("attribution", point, "attribution patching");
        for (const Point point : approximate.integrated) {
            add("integrated", point, "integrated gradients from corrupted to clean");
            const auto& rows = record.table(path_of("value", point)).dimensions;
            if (!record.find(path_of("completeness", point)))
                record.add_table(path_of("completeness", point), {rows[0], rows[1]},
                                 "sum of integrated gradients over the metric's change, the whole place patched");
        }
        if (!approximate.correlation) return;
        for (const Point point : options.points)
            for (const char* group : {"attribution", "integrated"})
                if (record.find(path_of(group, point)) && !record.find(correlation_path(group, point)))
                    record.add_table(correlation_path(group, point), {"/sequence"},
                                     "Spearman's correlation with the exact values");
    }

    void pair(std::int64_t s, const store::SequenceTokens& clean, const Cancellation& cancellation) {
        const store::SequenceTokens& own = record_.sequences[static_cast<std::size_t>(s)];
        from_ = aligned_texts(clean, own, options_.alignment, s);
        const TextInput text = text_input(own);
        Measure measure(model_, options_.metric);
        for (const Point point : options_.points) {
            const bool integrates = std::find(approximate_.integrated.begin(), approximate_.integrated.end(), point) !=
                                    approximate_.integrated.end();
            const auto places = model::places_of(point, model_.config(), model_.sites());
            const bool attributes =
                approximate_.attribution &&
                !has_numbers(values_of_text(record_, record_.table(path_of("attribution", point)), s));
            std::vector<PointKey> open;
            for (const PointKey& key : places)
                if (integrates && !has(record_, path_of("completeness", point), {s, row_of(key, model_)}))
                    open.push_back(key);
            if (!attributes && open.empty()) continue;
            at::Tensor hidden;
            RunValues target = record_run(model_, text_input(clean), places, options_.editor, cancellation, &hidden);
            measure.set_reference(hidden);
            const RunGradients corrupted = gradients_of(model_, text, places, measure, options_.editor, cancellation);
            for (auto& [key, value] : target) value = in_place(key, value, corrupted.values.at(key));
            if (attributes)
                for (const auto& [key, gradient] : corrupted.gradients)
                    put("attribution", s, key, (target.at(key) - corrupted.values.at(key)) * gradient);
            for (const PointKey& key : open) integrate(s, key, text, target, corrupted, measure, cancellation);
        }
        if (approximate_.correlation) correlate(s);
    }

private:
    static std::string correlation_path(const char* group, Point point) {
        return std::string("/patch/correlation/") + group + "/" + std::string(model::name(point));
    }

    /// Clean values at the positions of the corrupted run; its own where there are none.
    at::Tensor in_place(const PointKey& key, const at::Tensor& clean, const at::Tensor& corrupted) const {
        if (options_.alignment == Alignment::equal) return clean.nan_to_num();
        const std::int64_t axis = model::has_heads(key.point) ? 2 : 1;
        at::Tensor moved = corrupted.clone();
        const std::vector<std::int64_t>& from = from_.rows_of(key, model_);
        for (std::int64_t p = 0; p < std::ssize(from); ++p)
            if (from[static_cast<std::size_t>(p)] >= 0)
                moved.select(axis, p).copy_(clean.select(axis, from[static_cast<std::size_t>(p)]));
        return moved;
    }

    void integrate(std::int64_t s, const PointKey& key, const TextInput& text, const RunValues& target,
                   const RunGradients& corrupted, const Measure& measure, const Cancellation& cancellation) {
        const at::Tensor& begin = corrupted.values.at(key);
        const at::Tensor way = target.at(key) - begin;
        at::Tensor mean;
        for (std::int64_t k = 0; k < approximate_.steps; ++k) {
            const double part = (static_cast<double>(k) + 0.5) / static_cast<double>(approximate_.steps);
            const RunGradients at_step =
                gradients_of(model_, text, {key}, measure, options_.editor, cancellation, {{key, begin + way * part}});
            const at::Tensor& gradient = at_step.gradients.at(key);
            mean = mean.defined() ? mean + gradient : gradient;
        }
        const at::Tensor cells = way * mean / static_cast<double>(approximate_.steps);
        put("integrated", s, key, cells);
        const RunGradients whole =
            gradients_of(model_, text, {key}, measure, options_.editor, cancellation, {{key, target.at(key)}});
        ask::put(record_, path_of("completeness", key.point), {s, row_of(key, model_)},
                 cells.to(at::kDouble).nan_to_num(0.0).sum().item<double>() / (whole.metric - corrupted.metric));
    }

    /// Sums `product` [1, ..] over the axes that the table of the point lacks.
    void put(const char* group, std::int64_t s, const PointKey& key, const at::Tensor& product) {
        store::AskTable& table = answer_table(record_, path_of(group, key.point));
        const std::vector<std::int64_t> shape = record_.shape_of(table);
        const auto by = [&](const char* dimension) {
            return std::find(table.dimensions.begin(), table.dimensions.end(), dimension) != table.dimensions.end();
        };
        const bool heads = model::has_heads(key.point);
        at::Tensor cells = product[0].to(at::kDouble).nan_to_num(0.0);  // hidden keys have no score
        if (!by("/key_token")) cells = cells.sum(-1, true);
        if (!by("/token")) cells = cells.sum(-2, true);
        if (heads && !by("/head") && !by("/key_value_head")) cells = cells.sum(0, true);
        cells = (heads ? cells : cells.unsqueeze(0)).contiguous();  // [heads, rows, columns]
        const double* const numbers = cells.const_data_ptr<double>();
        const std::vector<std::int64_t>& from = from_.rows_of(key, model_);
        for (std::int64_t i = 0; i < cells.numel(); ++i) {
            const std::int64_t column = i % cells.size(2), row = i / cells.size(2) % cells.size(1);
            const std::int64_t head = i / (cells.size(1) * cells.size(2));
            if (by("/token") && from[static_cast<std::size_t>(row)] < 0) continue;
            std::int64_t place = s * shape[1] + row_of(key, model_);
            for (std::size_t d = 2; d < shape.size(); ++d) {
                const std::string& name = table.dimensions[d];
                place = place * shape[d] + (name == "/token" ? row : name == "/key_token" ? column : head);
            }
            table.values[static_cast<std::size_t>(place)] = numbers[i];
        }
    }

    void correlate(std::int64_t s) {
        for (const Point point : options_.points) {
            for (const char* group : {"attribution", "integrated"}) {
                const store::AskTable* const made = record_.find(path_of(group, point));
                if (made == nullptr) continue;
                const store::AskTable& exact = record_.table(path_of("value", point));
                const double found =
                    rank_correlation(values_of_text(record_, exact, s), values_of_text(record_, *made, s));
                ask::put(record_, correlation_path(group, point), {s}, found);
            }
        }
    }

    model::Model& model_;
    const PatchOptions& options_;
    const ApproximateOptions& approximate_;
    store::AskRecord& record_;
    AlignedTexts from_;
};

}  // namespace

double rank_correlation(std::span<const double> a, std::span<const double> b) {
    std::vector<double> x, y;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::isnan(a[i]) || std::isnan(b[i])) continue;
        x.push_back(a[i]);
        y.push_back(b[i]);
    }
    if (x.size() < 2) return std::nan("");
    const std::vector<double> u = ranks(x), v = ranks(y);
    const double middle = (static_cast<double>(u.size()) + 1) / 2;
    double both = 0, of_u = 0, of_v = 0;
    for (std::size_t i = 0; i < u.size(); ++i) {
        both += (u[i] - middle) * (v[i] - middle);
        of_u += (u[i] - middle) * (u[i] - middle);
        of_v += (v[i] - middle) * (v[i] - middle);
    }
    return both / std::sqrt(of_u * of_v);
}

void check_approximations(const model::Model& model, const PatchOptions& options,
                          const ApproximateOptions& approximate) {
    check_gradients(model);
    for (const Point point : approximate.integrated)
        if (std::find(options.points.begin(), options.points.end(), point) == options.points.end())
            throw Error(ErrorCode::usage, "--integrated-sites", "expected points of --sites",
                        "found " + std::string(model::name(point)));
}

void run_approximations(model::Model& model, const std::vector<store::SequenceTokens>& clean,
                        const PatchOptions& options, const ApproximateOptions& approximate, store::AskRecord& record,
                        Progress& progress, const Cancellation& cancellation) {
    record.complete = false;
    check_approximations(model, options, approximate);
    Approximation approximation(model, options, approximate, record);
    for (std::int64_t s = 0; s < std::ssize(clean); ++s) {
        progress.advance(static_cast<double>(s), static_cast<double>(clean.size()),
                         "gradients of pair " + std::to_string(s + 1) + " of " + std::to_string(clean.size()));
        approximation.pair(s, clean[static_cast<std::size_t>(s)], cancellation);
        if (options.saved) options.saved();
    }
    record.complete = true;
}

}  // namespace headscope::ask
