// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/metrics/classification.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "core/base/series.h"

namespace headscope::evaluation {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

/// How often a class was said, was true, and was both.
struct ClassCount {
    std::int64_t said = 0, truth = 0, both = 0;
    double f1() const {
        return said + truth == 0 ? 0 : 2.0 * static_cast<double>(both) / static_cast<double>(said + truth);
    }
};

std::map<std::int64_t, ClassCount> counts_of(std::span<const std::int64_t> said, std::span<const std::int64_t> truth) {
    std::map<std::int64_t, ClassCount> counts;
    for (std::size_t i = 0; i < said.size(); ++i) {
        ++counts[said[i]].said;
        ++counts[truth[i]].truth;
        if (said[i] == truth[i]) ++counts[said[i]].both;
    }
    return counts;
}

}  // namespace

double accuracy(std::span<const std::int64_t> said, std::span<const std::int64_t> truth) {
    if (said.empty()) return kUndefined;
    std::int64_t right = 0;
    for (std::size_t i = 0; i < said.size(); ++i) right += said[i] == truth[i] ? 1 : 0;
    return static_cast<double>(right) / static_cast<double>(said.size());
}

double f1_of_class(std::span<const std::int64_t> said, std::span<const std::int64_t> truth, std::int64_t wanted) {
    if (said.empty()) return kUndefined;
    return counts_of(said, truth)[wanted].f1();
}

double f1_macro(std::span<const std::int64_t> said, std::span<const std::int64_t> truth) {
    if (said.empty()) return kUndefined;
    double sum = 0;
    const auto counts = counts_of(said, truth);
    for (const auto& [label, count] : counts) sum += count.f1();
    return sum / static_cast<double>(counts.size());
}

double matthews(std::span<const std::int64_t> said, std::span<const std::int64_t> truth) {
    if (said.empty()) return kUndefined;
    const auto n = static_cast<double>(said.size());
    double right = 0, products = 0, said_squares = 0, truth_squares = 0;
    for (const auto& [label, count] : counts_of(said, truth)) {
        const auto p = static_cast<double>(count.said), t = static_cast<double>(count.truth);
        right += static_cast<double>(count.both);
        products += p * t;
        said_squares += p * p;
        truth_squares += t * t;
    }
    const double both = (n * n - said_squares) * (n * n - truth_squares);
    return both == 0 ? 0 : (right * n - products) / std::sqrt(both);
}

std::vector<double> mean_ranks(std::span<const double> values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    std::vector<double> ranks(values.size());
    for (std::size_t first = 0; first < order.size();) {
        std::size_t end = first + 1;
        while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
        // Ranks first + 1 to end.
        for (std::size_t i = first; i < end; ++i) ranks[order[i]] = static_cast<double>(first + 1 + end) / 2;
        first = end;
    }
    return ranks;
}

double spearman(std::span<const double> said, std::span<const double> truth) {
    const auto no_number = [](double value) { return std::isnan(value); };
    if (said.size() < 2 || std::any_of(said.begin(), said.end(), no_number) ||
        std::any_of(truth.begin(), truth.end(), no_number))
        return kUndefined;
    return correlation(mean_ranks(said), mean_ranks(truth));
}

}  // namespace headscope::evaluation
