// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/head_changes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/store/analysis/analysis_file.h"

namespace headscope::workspace {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
/// A measure that varies by less of its size is the same number, rounded differently: weights are float32.
constexpr double kRounding = 16 * std::numeric_limits<float>::epsilon();

void check_same_heads(const HeadTable& before, const HeadTable& after) {
    const auto same = [](const HeadRow& a, const HeadRow& b) {
        return a.site == b.site && a.layer == b.layer && a.head == b.head;
    };
    if (std::equal(before.rows.begin(), before.rows.end(), after.rows.begin(), after.rows.end(), same)) return;
    throw Error(ErrorCode::usage, "compare heads",
                "expected the same heads in both, " + std::to_string(before.rows.size()) + " of them",
                before.rows.size() == after.rows.size() ? std::string("found others")
                                                        : "found " + std::to_string(after.rows.size()));
}

/// Standard deviation of what exists; see HeadChanges::deviation.
double deviation_of(const std::vector<double>& values, const std::string& measure) {
    std::vector<double> all;
    std::copy_if(values.begin(), values.end(), std::back_inserter(all), [](double v) { return std::isfinite(v); });
    if (all.size() < 2) return kNone;
    const auto [low, high] = std::minmax_element(all.begin(), all.end());
    // Sparsity is what 1 - density - sink leaves: its rounding is that of numbers near 1.
    const double size = measure == "sparsity" ? 1.0 : std::max(std::abs(*low), std::abs(*high));
    if (*high - *low <= kRounding * size) return 0;
    const double count = static_cast<double>(all.size()), mean = std::accumulate(all.begin(), all.end(), 0.0) / count;
    double squares = 0;
    for (const double v : all) squares += (v - mean) * (v - mean);
    return std::sqrt(squares / (count - 1));
}

/// Difference and deviation of one column for all rows.
void add_measure(HeadChanges& changes, const HeadTable& before, std::size_t from, const HeadTable& after,
                 std::size_t to, std::size_t measure) {
    const std::size_t rows = before.rows.size();
    std::vector<double> values;
    for (std::size_t row = 0; row < rows; ++row) {
        const double a = before.value(row, from), b = after.value(row, to);
        values.push_back(a);
        values.push_back(b);
        if (std::isfinite(a) && std::isfinite(b)) changes.difference[row * changes.measures.size() + measure] = b - a;
    }
    changes.deviation.push_back(deviation_of(values, changes.measures[measure]));
}

void add_scores(HeadChanges& changes, std::size_t rows) {
    for (std::size_t row = 0; row < rows; ++row) {
        double sum = 0, most = 0;
        bool exists = false;
        std::size_t largest = HeadChanges::kNoMeasure;
        for (std::size_t m = 0; m < changes.measures.size(); ++m) {
            const double change = changes.change(row, m);
            if (std::isnan(change)) continue;
            exists = true;
            if (!(changes.deviation[m] > 0)) continue;
            const double part = (change / changes.deviation[m]) * (change / changes.deviation[m]);
            sum += part;
            if (part <= most) continue;
            most = part;
            largest = m;
        }
        changes.score.push_back(exists ? std::sqrt(sum) : kNone);
        changes.largest.push_back(largest);
    }
}

}  // namespace

HeadChanges head_changes(const HeadTable& before, const HeadTable& after, std::optional<double> loss_before,
                         std::optional<double> loss_after) {
    check_same_heads(before, after);
    const std::size_t rows = before.rows.size();
    HeadChanges changes;
    changes.loss_before = loss_before;
    changes.loss_after = loss_after;
    std::vector<std::pair<std::size_t, std::size_t>> columns;
    for (std::size_t from = 0; from < before.columns.size(); ++from) {
        const auto to = after.column(before.columns[from]);
        if (!to) continue;
        columns.emplace_back(from, *to);
        changes.measures.push_back(before.columns[from]);
    }
    changes.difference.assign(rows * columns.size(), kNone);
    for (std::size_t m = 0; m < columns.size(); ++m)
        add_measure(changes, before, columns[m].first, after, columns[m].second, m);
    add_scores(changes, rows);
    changes.ranking.resize(rows);
    std::iota(changes.ranking.begin(), changes.ranking.end(), std::size_t{0});
    std::stable_sort(changes.ranking.begin(), changes.ranking.end(), [&](std::size_t a, std::size_t b) {
        const double left = changes.score[a], right = changes.score[b];
        if (std::isnan(left) || std::isnan(right)) return !std::isnan(left) && std::isnan(right);
        return left > right;
    });
    return changes;
}

std::optional<double> mean_loss(const store::AnalysisFile& file, std::optional<std::int64_t> sequence) {
    const std::int64_t all = std::ssize(file.header().sequences);
    double sum = 0;
    std::int64_t count = 0;
    for (std::int64_t s = sequence.value_or(0); s < (sequence ? *sequence + 1 : all); ++s) {
        for (const double loss : file.loss(s).data) {
            if (!std::isfinite(loss)) continue;
            sum += loss;
            ++count;
        }
    }
    if (count == 0) return std::nullopt;
    return sum / static_cast<double>(count);
}

}  // namespace headscope::workspace
