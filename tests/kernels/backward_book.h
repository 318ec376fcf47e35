// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Attention and its gradients by the formulas, in plain float64 loops. The bound that rounding gives for each number is
// the result of the same sums over absolute values, times the relative error of a weight.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/attention.h"
#include "kernels/score_pairs.h"
#include "kernels/summary/attention_dropout.h"
#include "tests/kernels/attention_case.h"
#include "tests/kernels/backward_case.h"

namespace headscope::kernels::testing::backward {

inline constexpr double kEpsilon = 0x1p-24;  // half a unit in the last place of a float32

/// A sum and the sum of its terms' sizes.
struct Sum {
    double value = 0.0, size = 0.0;
    void add(double term, double its_size) {
        value += term;
        size += its_size;
    }
};

/// The threshold of sparsemax or entmax by bisection: the sum of the weights falls with it, and is 1 there.
inline double threshold_of(const std::vector<double>& scores, const std::function<double(double)>& weigh) {
    double high = *std::max_element(scores.begin(), scores.end()), low = high - 2.0;
    for (int step = 0; step < 200; ++step) {
        const double middle = 0.5 * (low + high);
        double sum = 0.0;
        for (const double score : scores) sum += weigh(score - middle);
        (sum > 1.0 ? low : high) = middle;
    }
    return 0.5 * (low + high);
}

/// The relative error of a weight: rounding of a score, whose size Cauchy and Schwarz bound, and of the sums.
inline double weight_error(const AttentionCase& c) {
    const Shape& s = c.shape();
    double largest = std::abs(c.rule.scale) * static_cast<double>(s.key_size);  // numbers are within [-1, 1]
    if (c.rule.soft_cap > 0.0) largest = std::max(largest, c.rule.soft_cap);
    for (const float slope : c.rule.slopes) largest += std::abs(slope) * static_cast<double>(s.keys + s.queries);
    const double score = (4.0 * std::sqrt(static_cast<double>(s.key_size)) + 8.0) * kEpsilon * (largest + 1.0);
    const double terms = std::sqrt(static_cast<double>(std::max(s.queries * s.heads / s.key_heads, s.keys)));
    return 3.0 * score + (24.0 + 2.0 * terms) * kEpsilon;
}

/// Factor of dropout of one pair: 0 or 1 / (1 - p).
inline double kept(const AttentionCase& c, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    const AttentionDropout& dropout = c.rule.dropout;
    const std::uint64_t row = dropout_row(dropout_sequence(dropout, b), h, i + c.rule.query_offset);
    return dropout_bits(row, j) < dropout_threshold(dropout.share) ? 0.0 : 1.0 / (1.0 - dropout.share);
}

/// One head, pair by pair in float64.
class Book {
public:
    Book(const AttentionCase& c, std::int64_t b, std::int64_t h) : c_(c), s_(c.shape()), b_(b), h_(h) {
        const ScoreRule& rule = c.rule;
        const SequenceBounds bounds = sequence_bounds(rule, b, s_.queries, s_.keys);
        const std::int64_t g = h / (s_.heads / s_.key_heads);
        weight.assign(static_cast<std::size_t>(s_.queries * s_.keys), 0.0);
        slope = slope_size = weight_size = weight;
        visible.assign(weight.size(), false);
        const Values gradient = output_gradient(s_);
        for (std::int64_t i = 0; i < s_.queries; ++i) {
            std::vector<double> score(static_cast<std::size_t>(s_.keys), 0.0);
            std::vector<bool> seen(score.size());
            double largest = -1e300;
            for (std::int64_t j = 0; j < s_.keys; ++j) {
                seen[index(j)] = allowed(rule, bounds, b, h, s_.heads, i, j);
                visible[cell(i, j)] = seen[index(j)];
                if (!seen[index(j)]) continue;
                double dot = 0.0;
                for (std::int64_t x = 0; x < s_.key_size; ++x)
                    dot += double{c.get('q', b, h, i, x)} * double{c.get('k', b, g, j, x)};
                score[index(j)] = score_of(rule, h, i, j, dot);
                largest = std::max(largest, score[index(j)]);
            }
            if (rule.normaliser == Normaliser::sigmoid) {
                sigmoid_row(i, score, seen, gradient);
                continue;
            }
            if (rule.normaliser == Normaliser::sparsemax) {
                sparsemax_row(i, score, seen, gradient);
                continue;
            }
            if (rule.normaliser == Normaliser::entmax) {
                entmax_row(i, score, seen, gradient);
                continue;
            }
            if (rule.normaliser == Normaliser::elastic) {
                elastic_row(i, score, seen, gradient, double{offset_of(rule, bounds, h, i)},
                            offset_factor(rule, bounds, i));
                continue;
            }
            const bool taylor = rule.normaliser == Normaliser::taylor;
            const auto part = [&](double x) { return taylor ? 1.0 + x + 0.5 * x * x : std::exp(x - largest); };
            const bool sink = !rule.sink_logits.empty();
            double total = 0.0;
            if (sink) {
                largest = std::max(largest, double{rule.sink_logits[index(h)]});
                total = std::exp(double{rule.sink_logits[index(h)]} - largest);
            }
            for (std::int64_t j = 0; j < s_.keys; ++j)
                if (seen[index(j)]) total += part(score[index(j)]);
            Sum mean;
            std::vector<Sum> d_weight(score.size());
            for (std::int64_t j = 0; j < s_.keys; ++j) {
                if (!seen[index(j)]) continue;
                weight[cell(i, j)] = weight_size[cell(i, j)] = part(score[index(j)]) / total;
                d_weight[index(j)] = product(i, j, gradient);
                mean.add(weight[cell(i, j)] * d_weight[index(j)].value, weight[cell(i, j)] * d_weight[index(j)].size);
            }
            if (sink && std::find(seen.begin(), seen.end(), true) != seen.end()) {
                const double own = std::exp(double{rule.sink_logits[index(h)]} - largest) / total;
                d_sink.add(-own * mean.value, own * mean.size);
            }
            for (std::int64_t j = 0; j < s_.keys; ++j) {
                if (!seen[index(j)]) continue;
                const double share = rule.soft_cap > 0.0 ? score[index(j)] / rule.soft_cap : 0.0;
                const double moved = taylor ? (1.0 + score[index(j)]) / total : weight[cell(i, j)];
                const double size = taylor ? (1.0 + std::abs(score[index(j)])) / total : moved;
                const double factor = rule.scale * (1.0 - share * share);
                slope[cell(i, j)] = moved * factor * (d_weight[index(j)].value - mean.value);
                slope_size[cell(i, j)] = size * factor * (d_weight[index(j)].size + mean.size);
            }
        }
    }
    /// Dropout behind the normalizer: what multiplies the values.
    void drop() {
        for (std::int64_t i = 0; i < s_.queries; ++i) {
            for (std::int64_t j = 0; j < s_.keys; ++j) {
                weight[cell(i, j)] *= kept(c_, b_, h_, i, j);
                weight_size[cell(i, j)] *= kept(c_, b_, h_, i, j);
            }
        }
    }
    std::size_t cell(std::int64_t i, std::int64_t j) const { return index(i * s_.keys + j); }
    std::vector<double> weight, weight_size, slope, slope_size;
    std::vector<bool> visible;
    Sum d_sink, d_offset;
    int undecided = 0;  ///< rows with a score that rounding may put on either side of the threshold

private:
    /// dA of one pair.
    Sum product(std::int64_t i, std::int64_t j, const Values& gradient) const {
        const std::int64_t g = h_ / (s_.heads / s_.key_heads);
        const double factor = kept(c_, b_, h_, i, j);
        Sum sum;
        for (std::int64_t x = 0; x < s_.value_size; ++x) {
            const double term =
                factor * double{gradient.data[gradient.at(b_, h_, i, x)]} * double{c_.get('v', b_, g, j, x)};
            sum.add(term, std::abs(term));
        }
        return sum;
    }

    double slope_factor(double score) const {
        const double share = c_.rule.soft_cap > 0.0 ? score / c_.rule.soft_cap : 0.0;
        return c_.rule.scale * (1.0 - share * share);
    }

    /// A = max(p + offset, 0); d score = p (g - sum of p g), g = dA where A > 0.
    void elastic_row(std::int64_t i, const std::vector<double>& score, const std::vector<bool>& seen,
                     const Values& gradient, double offset, double factor) {
        double largest = -1e300, total = 0.0, count = 0.0;
        for (std::size_t j = 0; j < seen.size(); ++j)
            if (seen[j]) largest = std::max(largest, score[j]);
        for (std::size_t j = 0; j < seen.size(); ++j) {
            if (!seen[j]) continue;
            total += std::exp(score[j] - largest);
            count += 1.0;
        }
        std::vector<double> p(seen.size(), 0.0);
        std::vector<Sum> d_weight(seen.size());
        Sum mean, sum;
        bool doubtful = false;
        for (std::int64_t j = 0; j < s_.keys; ++j) {
            if (!seen[index(j)]) continue;
            p[index(j)] = std::exp(score[index(j)] - largest) / total;
            const double x = p[index(j)] + offset;
            // One key alone has a weight of exactly 1.
            const bool near = count > 1.0 && std::abs(x) < weight_error(c_) * p[index(j)];
            doubtful = doubtful || near;
            weight[cell(i, j)] = std::max(x, 0.0);
            if (x > 0.0 || near) weight_size[cell(i, j)] = p[index(j)] + std::abs(offset);
            const Sum one = product(i, j, gradient);
            d_weight[index(j)].add(x > 0.0 ? one.value : 0.0, x > 0.0 || near ? one.size : 0.0);
            mean.add(p[index(j)] * d_weight[index(j)].value, p[index(j)] * d_weight[index(j)].size);
            sum.add(d_weight[index(j)].value, d_weight[index(j)].size);
        }
        // A weight whose zero depends on rounding may be wrong by its whole size.
        const double blow = doubtful ? 1.0 / kEpsilon : 1.0;
        undecided += doubtful ? 1 : 0;
        d_offset.add(factor * sum.value, factor * sum.size * blow);
        for (std::int64_t j = 0; j < s_.keys; ++j) {
            const double moved = p[index(j)] * slope_factor(score[index(j)]);
            slope[cell(i, j)] = moved * (d_weight[index(j)].value - mean.value);
            slope_size[cell(i, j)] = moved * (d_weight[index(j)].size + mean.size) * blow;
        }
    }

    /// A = x^2 of x = max((s - threshold) / 2, 0); d score = x (dA - sum of x dA / sum of x). An x is as wrong as the
    /// score, however small it is.
    void entmax_row(std::int64_t i, const std::vector<double>& score, const std::vector<bool>& seen,
                    const Values& gradient) {
        std::vector<double> candidates;
        double largest = 0.0;
        for (std::size_t j = 0; j < seen.size(); ++j) {
            if (!seen[j]) continue;
            candidates.push_back(score[j]);
            largest = std::max(largest, std::abs(score[j]));
        }
        if (candidates.empty()) return;
        const bool sink = !c_.rule.sink_logits.empty();
        if (sink) candidates.push_back(double{c_.rule.sink_logits[index(h_)]});
        const auto root = [](double above) { return 0.5 * std::max(above, 0.0); };
        const double threshold = threshold_of(candidates, [&](double above) { return root(above) * root(above); });
        const double doubt = 16.0 * kEpsilon * (largest + 1.0) * std::sqrt(static_cast<double>(s_.key_size));
        double roots = 0.0;
        for (const double one : candidates) roots += root(one - threshold);
        Sum mean;
        std::vector<Sum> d_weight(seen.size());
        std::vector<bool> near(seen.size(), false);
        for (std::int64_t j = 0; j < s_.keys; ++j) {
            if (!seen[index(j)]) continue;
            const double x = root(score[index(j)] - threshold);
            near[index(j)] = score[index(j)] > threshold - doubt;
            d_weight[index(j)] = product(i, j, gradient);
            weight[cell(i, j)] = x * x;
            if (!near[index(j)]) continue;
            weight_size[cell(i, j)] = x * x + 2.0 * x + 1.0;
            mean.add(x * d_weight[index(j)].value / roots, 2.0 * (x + 1.0) * d_weight[index(j)].size / roots);
        }
        if (sink) {
            const double x = root(candidates.back() - threshold);
            d_sink.add(-x * mean.value, (x + (candidates.back() > threshold - doubt ? 1.0 : 0.0)) * mean.size);
        }
        for (std::int64_t j = 0; j < s_.keys; ++j) {
            if (!near[index(j)]) continue;
            const double x = root(score[index(j)] - threshold), factor = slope_factor(score[index(j)]);
            slope[cell(i, j)] = x * factor * (d_weight[index(j)].value - mean.value);
            slope_size[cell(i, j)] = (x + 1.0) * factor * (d_weight[index(j)].size + mean.size);
        }
    }

    /// d score = A (1 - A) dA, each pair for itself. 1 - A is as wrong as 1.
    void sigmoid_row(std::int64_t i, const std::vector<double>& score, const std::vector<bool>& seen,
                     const Values& gradient) {
        for (std::int64_t j = 0; j < s_.keys; ++j) {
            if (!seen[index(j)]) continue;
            const double a = 1.0 / (1.0 + std::exp(-score[index(j)])), moved = a * slope_factor(score[index(j)]);
            const Sum d_weight = product(i, j, gradient);
            weight[cell(i, j)] = weight_size[cell(i, j)] = a;
            slope[cell(i, j)] = moved * (1.0 - a) * d_weight.value;
            slope_size[cell(i, j)] = moved * d_weight.size;
        }
    }

    /// d score = (dA - its mean over the support) on the support, where the sink logit counts with a dA of 0.
    void sparsemax_row(std::int64_t i, const std::vector<double>& score, const std::vector<bool>& seen,
                       const Values& gradient) {
        const ScoreRule& rule = c_.rule;
        std::vector<double> candidates;
        double largest = 0.0;
        for (std::int64_t j = 0; j < s_.keys; ++j) {
            if (!seen[index(j)]) continue;
            candidates.push_back(score[index(j)]);
            largest = std::max(largest, std::abs(score[index(j)]));
        }
        if (candidates.empty()) return;
        const bool sink = !rule.sink_logits.empty();
        if (sink) candidates.push_back(double{rule.sink_logits[index(h_)]});
        const double threshold = threshold_of(candidates, [](double above) { return std::max(above, 0.0); });
        const double doubt = 16.0 * kEpsilon * (largest + 1.0) * std::sqrt(static_cast<double>(s_.key_size));
        double support = 0.0;
        bool doubtful = false;
        for (const double one : candidates) {
            support += one > threshold ? 1.0 : 0.0;
            doubtful = doubtful || std::abs(one - threshold) < doubt;
        }
        undecided += doubtful ? 1 : 0;
        Sum mean;
        std::vector<Sum> d_weight(score.size());
        for (std::int64_t j = 0; j < s_.keys; ++j) {
            if (!seen[index(j)]) continue;
            weight[cell(i, j)] = std::max(score[index(j)] - threshold, 0.0);
            d_weight[index(j)] = product(i, j, gradient);
            if (weight[cell(i, j)] > 0.0)
                mean.add(d_weight[index(j)].value / support, d_weight[index(j)].size / support);
        }
        if (sink && candidates.back() > threshold) d_sink.add(-mean.value, doubtful ? 1e30 : mean.size);
        for (std::int64_t j = 0; j < s_.keys; ++j) {
            const std::size_t at = cell(i, j);
            if (!seen[index(j)]) continue;
            // A weight is as wrong as the score, however small it is.
            if (doubtful || weight[at] > 0.0) weight_size[at] = weight[at] + 1.0;
            if (doubtful) slope_size[at] = 1e30;
            if (weight[at] == 0.0) continue;
            const double share = rule.soft_cap > 0.0 ? score[index(j)] / rule.soft_cap : 0.0;
            const double factor = rule.scale * (1.0 - share * share);
            slope[at] = factor * (d_weight[index(j)].value - mean.value);
            if (!doubtful) slope_size[at] = factor * (d_weight[index(j)].size + mean.size);
        }
    }

    static std::size_t index(std::int64_t n) { return static_cast<std::size_t>(n); }
    const AttentionCase& c_;
    const Shape s_;
    std::int64_t b_, h_;
};

}  // namespace headscope::kernels::testing::backward
