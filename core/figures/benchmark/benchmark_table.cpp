// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/benchmark/benchmark_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/cost/thesis.h"
#include "core/figures/benchmark/benchmark_results.h"
#include "core/figures/recipe.h"
#include "core/figures/significance/significance.h"

namespace headscope::figures {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

BenchmarkValue value_of(std::vector<double> each) {
    BenchmarkValue value;
    if (!each.empty()) {
        const Moments all = moments(each);
        value.mean = all.mean;
        value.deviation = all.deviation;
    }
    value.each = std::move(each);
    return value;
}

/// The mean over tasks of each seed that has all of them, then over seeds.
BenchmarkValue average_of(const VariantResults& variant) {
    std::vector<double> each;
    for (const auto& [seed, first] : variant.tasks.front()) {
        if (seed < -1) continue;
        double sum = 0;
        bool complete = true;
        for (const BySeed& task : variant.tasks) {
            const auto found = task.find(seed);
            complete = complete && found != task.end();
            if (complete) sum += found->second.result->value;
        }
        if (complete) each.push_back(sum / static_cast<double>(variant.tasks.size()));
    }
    return value_of(std::move(each));
}

std::size_t named_variant(const std::vector<BenchmarkVariant>& variants, const char* option, const std::string& name) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < variants.size(); ++i) {
        if (variants[i].name == name) return i;
        names.push_back(variants[i].name);
    }
    throw Error(ErrorCode::usage, option, "expected one of the variants " + list_text(names),
                "found " + (name.empty() ? std::string("none") : escaped(name)));
}

TestedModel tested_model(const BenchmarkValue& value, const BySeed& results, std::vector<EvaluationMember>& members) {
    for (const auto& [seed, result] : results) members.push_back(result.member);
    const auto* const any = results.begin()->second.result;
    return {value.each, members, any->task, any->length};
}

/// Compares a variant with the best of the others, column by column.
void test(std::vector<BenchmarkVariant>& variants, const std::vector<VariantResults>& results, std::size_t tested,
          const BenchmarkSet& set) {
    for (std::size_t c = 0; c <= set.tasks.size(); ++c) {
        BenchmarkValue& mine = variants[tested].values[c];
        std::optional<std::size_t> best;
        for (std::size_t v = 0; v < variants.size(); ++v) {
            const double mean = variants[v].values[c].mean;
            if (v == tested || std::isnan(mean)) continue;
            if (!best || mean > variants[*best].values[c].mean) best = v;
        }
        if (!best || std::isnan(mine.mean)) continue;
        const BenchmarkValue& other = variants[*best].values[c];
        if (c == set.tasks.size()) {
            mine.p = difference_p({mine.each, {}, "", 0}, {other.each, {}, "", 0}, "", 0);
            continue;
        }
        std::vector<EvaluationMember> ours, theirs;
        mine.p = difference_p(tested_model(mine, results[tested].tasks[c], ours),
                              tested_model(other, results[*best].tasks[c], theirs), std::string(set.tasks[c].metric),
                              results[tested].tasks[c].begin()->second.result->shots);
    }
}

std::string fixed(double value, int digits) {
    if (!std::isfinite(value)) return "--";
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

std::string score_cell(const BenchmarkValue& value) {
    if (std::isnan(value.mean)) return "--";
    const char* mark = value.rank == Rank::best ? "\\textbf{" : value.rank == Rank::second ? "\\underline{" : "";
    std::string cell = mark + fixed(100 * value.mean, 1) + (*mark != '\0' ? "}" : "");
    if (value.p < kSignificant) cell += "$^{*}$";
    if (std::isfinite(value.deviation)) cell += " (" + fixed(100 * value.deviation, 1) + ")";
    return cell;
}

}  // namespace

BenchmarkTable::BenchmarkTable(Evaluations evaluations, const FigureOptions& options)
    : set_(benchmark_set(options.set)) {
    const std::vector<VariantResults> results = benchmark_results(evaluations, set_, options.length);
    if (results.empty())
        throw Error(ErrorCode::usage, "--set",
                    "expected results of " + std::string(set_.title) + ", such as " +
                        std::string(set_.tasks.front().name) + " by " + std::string(set_.tasks.front().metric),
                    "found none");
    for (const VariantResults& one : results) {
        BenchmarkVariant variant{one.name, one.mixer, one.attention_parameters, {}};
        for (std::size_t t = 0; t < set_.tasks.size(); ++t) {
            std::vector<double> each;
            std::set<std::string> jobs;
            for (const auto& [seed, result] : one.tasks[t]) {
                each.push_back(result.result->value);
                jobs.insert(result.model().job);
            }
            variant.values.push_back(value_of(std::move(each)));
            if (jobs.size() > 1)
                notes_.push_back(one.name + " on " + std::string(set_.tasks[t].name) +
                                 ": jobs that differ in more than their seeds.");
        }
        variant.values.push_back(average_of(one));
        variants_.push_back(std::move(variant));
    }
    baseline_ = named_variant(variants_, "--baseline", options.baseline);
    if (!options.smallest.empty()) smallest_ = named_variant(variants_, "--smallest", options.smallest);
    for (std::size_t c = 0; c < columns(); ++c) {
        std::vector<double> means;
        for (BenchmarkVariant& variant : variants_) {
            BenchmarkValue& value = variant.values[c];
            means.push_back(value.mean);
            const double retained = cost::performance_retention(value.mean, variants_[baseline_].values[c].mean, false);
            value.prr = std::isfinite(retained) ? retained : kNone;
            if (smallest_ && &variant != smallest())
                value.peop = elasticity(variant.mixer, value.mean, variant.attention_parameters,
                                        smallest()->values[c].mean, smallest()->attention_parameters, false);
        }
        const std::vector<Rank> ranks = ranks_of(means, false);
        for (std::size_t v = 0; v < variants_.size(); ++v) variants_[v].values[c].rank = ranks[v];
    }
    tested_ = !options.significance.empty();
    if (tested_) test(variants_, results, named_variant(variants_, "--significance", options.significance), set_);
}

std::string BenchmarkTable::column(std::size_t index) const {
    return index < set_.tasks.size() ? std::string(set_.tasks[index].name) : "average";
}

Table BenchmarkTable::numbers() const {
    std::vector<std::string> variant, task, metric;
    std::vector<double> mean, deviation, prr, peop, p;
    std::vector<std::int64_t> seeds;
    for (const BenchmarkVariant& one : variants_) {
        for (std::size_t c = 0; c < columns(); ++c) {
            const BenchmarkValue& value = one.values[c];
            variant.push_back(one.name);
            task.push_back(column(c));
            metric.emplace_back(c < set_.tasks.size() ? set_.tasks[c].metric : "");
            mean.push_back(value.mean);
            deviation.push_back(value.deviation);
            seeds.push_back(std::ssize(value.each));
            prr.push_back(value.prr);
            peop.push_back(value.peop);
            p.push_back(value.p);
        }
    }
    Table table{{{"variant", std::move(variant)},
                 {"task", std::move(task)},
                 {"metric", std::move(metric)},
                 {"mean", std::move(mean)},
                 {"sd", std::move(deviation)},
                 {"seeds", std::move(seeds)},
                 {"prr", std::move(prr)},
                 {"peop", std::move(peop)}}};
    if (tested_) table.columns.push_back({"p", std::move(p)});
    return table;
}

std::string BenchmarkTable::latex() const {
    std::string text = "\\begin{tabular}{l" + std::string(columns(), 'r') + "}\n\\toprule\nvariant";
    for (std::size_t c = 0; c < columns(); ++c) text += " & " + latex_text(column(c));
    text += " \\\\\n";
    const auto block = [&](const char* title, const auto& cell) {
        text += "\\midrule\n";
        if (*title != '\0') text += "\\multicolumn{" + std::to_string(columns() + 1) + "}{l}{" + title + "} \\\\\n";
        for (const BenchmarkVariant& variant : variants_) {
            text += latex_text(variant.name);
            for (const BenchmarkValue& value : variant.values) text += " & " + cell(value);
            text += " \\\\\n";
        }
    };
    block("", score_cell);
    block("PRR (\\%)", [](const BenchmarkValue& value) { return fixed(100 * value.prr, 2); });
    if (smallest_) block("PEoP", [](const BenchmarkValue& value) { return fixed(value.peop, 2); });
    return text + "\\bottomrule\n\\end{tabular}\n";
}

}  // namespace headscope::figures
