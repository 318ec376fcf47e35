// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/ablate.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <c10/core/InferenceMode.h>

#include "core/ask/answers.h"
#include "core/ask/cells.h"
#include "core/ask/gradients.h"
#include "core/ask/sweep.h"
#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/model/edits/intervention.h"
#include "core/model/model.h"

namespace headscope::ask {
namespace {

using model::Point;
using model::PointKey;

struct Ablated {
    Point point;
    const char* table;
};
constexpr Ablated kAblated[] = {{Point::head_output, "/ablate/head"},
                                {Point::attention_output, "/ablate/attention"},
                                {Point::feed_forward_output, "/ablate/feed_forward"}};

class Ablation {
public:
    static constexpr const char* kBaseline = "/ablate/baseline";

    Ablation(model::Model& model, const AblateOptions& options, store::AskRecord& record)
        : model_(model), options_(options), record_(record) {
        options.metric.check(model);
        options.metric.check_texts(record.sequences);
        const bool reads = options.how == AblateBy::reference || options.how == AblateBy::resample;
        if (reads != !options.reference.empty())
            throw Error(ErrorCode::usage, "--reference-tokens",
                        reads ? "expected reference texts" : "expected none but with --how reference or resample",
                        reads ? "found none" : "found some");
        for (std::int64_t s = 0; options.how == AblateBy::resample && s < std::ssize(record.sequences); ++s)
            resampled(s);  // before the first run
        for (const Ablated& one : kAblated)
            for (const PointKey& key : model::places_of(one.point, model.config(), model.sites()))
                places_.push_back(key);
        if (!record.tables.empty()) return;
        record.add_table(kBaseline, {"/sequence"}, "metric of the unedited run");
        record.add_table("/ablate/head", {"/sequence", "/site", "/head"}, "metric with the head's output replaced");
        record.add_table("/ablate/attention", {"/sequence", row_dimension(Point::attention_output, model)},
                         "metric with the attention's output replaced");
        record.add_table("/ablate/feed_forward", {"/sequence", "/layer"},
                         "metric with the feed-forward's output replaced");
    }

    /// Cells of a text that have no number yet.
    std::vector<Cell> open(std::int64_t s) const {
        std::vector<Cell> cells;
        for (const PointKey& key : places_) {
            const bool heads = model::has_heads(key.point);
            const std::int64_t count = heads ? model::heads_at(key, model_.sites()) : 1;
            for (std::int64_t head = 0; head < count; ++head) {
                Cell cell{key, heads ? head : -1};
                cell.how = options_.how == AblateBy::zero   ? Cell::How::zero
                           : options_.how == AblateBy::mean ? Cell::How::mean
                                                            : Cell::How::values;
                cell.result = heads ? cell_of(record_, table(key.point), {s, key.site, head})
                                    : cell_of(record_, table(key.point), {s, row_of(key, model_)});
                if (std::isnan(table(key.point).values[cell.result])) cells.push_back(cell);
            }
        }
        return cells;
    }

    void sequence(std::int64_t s, const Cancellation& cancellation, const std::function<void()>& step) {
        const TextInput text = text_input(record_.sequences[static_cast<std::size_t>(s)]);
        double baseline = 0;
        RunValues ahead;
        const Measure measure =
            measure_from_run(model_, options_.metric, text, options_.editor, cancellation, baseline, &ahead);
        put(record_, kBaseline, {s}, baseline);
        const RunValues values = other_values(s, cancellation);
        run_cells(
            model_, text, open(s), &values, measure, options_.editor, cancellation,
            [&](const Cell& cell, double found) {
                answer_table(record_, table(cell.key.point).path).values[cell.result] = found;
                step();
            },
            &ahead);
    }

    bool has_importance() const {
        const store::AskTable* found = record_.find("/ablate/importance");
        return found != nullptr && has_numbers(found->values);
    }

    /// I_h = mean over texts of |sum over positions and channels of o_h dLoss / do_h|. Calls step(s) behind text s.
    void importance(const Cancellation& cancellation, const std::function<void(std::int64_t s)>& step) {
        const auto places = model::places_of(Point::head_output, model_.config(), model_.sites());
        Metric loss;
        loss.kind = MetricKind::loss;
        const Measure measure(model_, loss);
        const std::vector<std::string> heads{"/site", "/head"};
        if (!record_.find("/ablate/importance")) {
            record_.add_table("/ablate/importance", heads, "importance by gradients of the loss", "nat");
            record_.add_table("/ablate/importance_normalized", heads, "the same over its L2 norm in the layer");
        }
        std::map<PointKey, at::Tensor> sums;
        for (std::int64_t s = 0; s < std::ssize(record_.sequences); ++s) {
            const TextInput text = text_input(record_.sequences[static_cast<std::size_t>(s)]);
            const RunGradients found = gradients_of(model_, text, places, measure, options_.editor, cancellation);
            for (const auto& [key, gradient] : found.gradients) {
                const at::Tensor own =
                    (found.values.at(key).to(at::kDouble) * gradient.to(at::kDouble))[0].sum(-1).sum(-1).abs();
                at::Tensor& all = sums[key];
                all = all.defined() ? all + own : own;
            }
            step(s);
        }
        for (const auto& [key, sum] : sums) {
            const at::Tensor mean = sum / static_cast<double>(record_.sequences.size()), norm = mean.norm();
            for (std::int64_t head = 0; head < mean.size(0); ++head) {
                put(record_, "/ablate/importance", {key.site, head}, mean[head].item<double>());
                put(record_, "/ablate/importance_normalized", {key.site, head}, (mean[head] / norm).item<double>());
            }
        }
    }

private:
    RunValues other_values(std::int64_t s, const Cancellation& cancellation) {
        if (options_.how == AblateBy::reference) {
            if (means_.empty()) means_ = means(cancellation);
            return means_;  // of one row, which a cell copies to each of its own
        }
        if (options_.how != AblateBy::resample) return {};
        return record_run(model_, text_input(resampled(s)), places_, options_.editor, cancellation, nullptr);
    }

    /// The reference text whose values text s takes. Throws usage for one of another length.
    const store::SequenceTokens& resampled(std::int64_t s) const {
        const store::SequenceTokens& text = record_.sequences[static_cast<std::size_t>(s)];
        const std::int64_t number = s % std::ssize(options_.reference);
        const store::SequenceTokens& other = options_.reference[static_cast<std::size_t>(number)];
        const auto refuse = [&](const char* what, std::size_t expected, std::size_t found) {
            throw Error(ErrorCode::usage, "--reference-tokens",
                        std::string("expected ") + what + " " + std::to_string(number) + " to have " +
                            std::to_string(expected) + " tokens, as " + what + " " + std::to_string(s),
                        "found " + std::to_string(found));
        };
        if (other.ids.size() != text.ids.size()) refuse("text", text.ids.size(), other.ids.size());
        const std::size_t own = text.predicted().ids.size(), others = other.predicted().ids.size();
        if (own != others) refuse("target", own, others);
        return other;
    }

    /// Over all positions of all reference texts, every token weighted alike: [1, H, 1, dv] or [1, 1, d].
    RunValues means(const Cancellation& cancellation) {
        RunValues sums;
        std::map<PointKey, std::int64_t> rows;
        for (const store::SequenceTokens& text : options_.reference) {
            const RunValues own = record_run(model_, text_input(text), places_, options_.editor, cancellation, nullptr);
            const c10::InferenceMode inference;
            for (const auto& [key, value] : own) {
                const at::Tensor sum = value.to(at::kDouble).sum(-2, true);
                at::Tensor& all = sums[key];
                all = all.defined() ? all + sum : sum;
                rows[key] += value.size(-2);
            }
        }
        const c10::InferenceMode inference;
        for (auto& [key, value] : sums) value = value / static_cast<double>(rows.at(key));
        return sums;
    }

    const store::AskTable& table(Point point) const {
        for (const Ablated& one : kAblated)
            if (one.point == point) return record_.table(one.table);
        throw Error(ErrorCode::internal, "ask ablate", "expected a table of the point", "found none");
    }

    model::Model& model_;
    const AblateOptions& options_;
    store::AskRecord& record_;
    std::vector<PointKey> places_;
    RunValues means_;
};

}  // namespace

std::string ranked_heads_csv(const store::AskRecord& record) {
    struct Ranked {
        std::int64_t site, head;
        double change;
    };
    std::vector<Ranked> ranked;
    for (std::int64_t site = 0; site < std::ssize(record.sites); ++site) {
        for (std::int64_t head = 0; head < record.sites[static_cast<std::size_t>(site)].heads; ++head) {
            double sum = 0, count = 0;
            for (std::int64_t s = 0; s < std::ssize(record.sequences); ++s) {
                const double change =
                    get(record, "/ablate/head", {s, site, head}) - get(record, "/ablate/baseline", {s});
                if (std::isnan(change)) continue;
                sum += change;
                ++count;
            }
            if (count > 0) ranked.push_back({site, head, sum / count});
        }
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const Ranked& a, const Ranked& b) { return std::abs(a.change) > std::abs(b.change); });
    std::string csv = "layer,site,head,change,importance\n";
    for (const Ranked& one : ranked) {
        const bool has_importance = record.find("/ablate/importance") != nullptr;
        csv += std::to_string(record.sites[static_cast<std::size_t>(one.site)].layer) + "," + std::to_string(one.site) +
               "," + std::to_string(one.head) + "," + printf_text("%.9g", one.change) + "," +
               (has_importance ? printf_text("%.9g", get(record, "/ablate/importance", {one.site, one.head})) : "") +
               "\n";
    }
    return csv;
}

void run_ablate(model::Model& model, const AblateOptions& options, store::AskRecord& record, Progress& progress,
                const Cancellation& cancellation) {
    Ablation ablation(model, options, record);
    double ahead = 0;
    if (options.importance && !ablation.has_importance()) {
        // First, as weights without gradients are refused before the long sweep. A text counts as a cell does.
        const double all = static_cast<double>(record.sequences.size()) + open_cells(ablation, record);
        progress.advance(0, all, "importance");
        ablation.importance(cancellation, [&](std::int64_t s) {
            progress.advance(++ahead, all, "importance, " + text_label(record, s));
        });
        if (options.saved) options.saved();
    }
    sweep_texts(ablation, record, Ablation::kBaseline, ahead, progress, options.saved, cancellation);
    record.complete = true;
}

}  // namespace headscope::ask
