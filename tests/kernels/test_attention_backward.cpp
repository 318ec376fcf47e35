// SPDX-License-Identifier: GPL-3.0-or-later
// The training passes against the formulas in plain float64 loops, with the bound that rounding gives for each number:
// what the same sums make of absolute values, times the relative error of a weight.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "kernels/attention_backward.h"
#include "kernels/backend.h"
#include "kernels/parallel.h"
#include "kernels/score_pairs.h"
#include "tests/kernels/attention_case.h"

using namespace headscope::kernels;
using headscope::kernels::testing::AttentionCase;
using headscope::kernels::testing::Shape;

namespace {

constexpr double kEpsilon = 0x1p-24;  // half a unit in the last place of a float32
constexpr float kCanary = 4321.0F;

/// A result [batch, heads, length, size] in memory [batch, length, heads, size + 1], the last column a canary.
struct Values {
    Values(std::int64_t batch, std::int64_t head_count, std::int64_t rows, std::int64_t columns)
        : heads(head_count), length(rows), size(columns) {
        data.assign(static_cast<std::size_t>(batch * heads * length * (size + 1)), kCanary);
    }
    std::size_t at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) const {
        return static_cast<std::size_t>(((b * length + i) * heads + h) * (size + 1) + c);
    }
    MutableView view() {
        return {data.data(), ElementType::float32, length * heads * (size + 1), size + 1, heads * (size + 1)};
    }
    TensorView input(std::int64_t batch) const {
        return {data.data(), ElementType::float32, batch, heads, length, size, length * heads * (size + 1),
                size + 1,    heads * (size + 1)};
    }
    std::int64_t heads, length, size;
    std::vector<float> data;
};

struct Found {
    explicit Found(const Shape& s)
        : output(s.batch, s.heads, s.queries, s.value_size),
          query(s.batch, s.heads, s.queries, s.key_size),
          key(s.batch, s.key_heads, s.keys, s.key_size),
          value(s.batch, s.key_heads, s.keys, s.value_size),
          shift(static_cast<std::size_t>(s.batch * s.heads * s.queries)),
          factor(shift.size()),
          sinks(static_cast<std::size_t>(s.heads), kCanary),
          offsets(sinks) {}
    Values output, query, key, value;
    std::vector<float> shift, factor, sinks, offsets, distance_bias, blocks;
};

/// d loss / d O: the numbers of some sine, [batch, heads, queries, value_size].
Values output_gradient(const Shape& s) {
    Values gradient(s.batch, s.heads, s.queries, s.value_size);
    for (std::size_t n = 0; n < gradient.data.size(); ++n)
        gradient.data[n] = static_cast<float>(std::sin(static_cast<double>(n) * 0.37));
    return gradient;
}

bool has_block_gradients(const AttentionCase& c) {
    return c.rule.blocks.block_size > 0 && c.rule.normaliser == Normaliser::softmax;
}

Found run(const AttentionCase& c, bool hidden_blocks = false) {
    const Shape& s = c.shape();
    Found found(s);
    if (has_block_gradients(c)) found.blocks.assign(c.rule.blocks.visible.size(), kCanary);
    found.distance_bias.assign(c.rule.distance_bias.size(), kCanary);
    const SoftmaxRows rows{found.shift.data(), found.factor.data()};
    attention_forward(c.input(), found.output.view(), rows);
    attention_backward(c.input(), found.output.input(s.batch), output_gradient(s).input(s.batch), rows,
                       {found.query.view(), found.key.view(), found.value.view(),
                        c.rule.sink_logits.empty() ? nullptr : found.sinks.data(),
                        c.rule.bias_length == 0 ? nullptr : found.distance_bias.data(),
                        found.blocks.empty() ? nullptr : found.blocks.data(), hidden_blocks,
                        c.rule.offsets.empty() ? nullptr : found.offsets.data()});
    return found;
}

/// A sum and the sum of its terms' sizes.
struct Sum {
    double value = 0.0, size = 0.0;
    void add(double term, double its_size) {
        value += term;
        size += its_size;
    }
};

/// The threshold of sparsemax or entmax by bisection: the sum of the weights falls with it, and is 1 there.
double threshold_of(const std::vector<double>& scores, const std::function<double(double)>& weigh) {
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
double weight_error(const AttentionCase& c) {
    const Shape& s = c.shape();
    double largest = std::abs(c.rule.scale) * static_cast<double>(s.key_size);  // numbers are within [-1, 1]
    if (c.rule.soft_cap > 0.0) largest = std::max(largest, c.rule.soft_cap);
    for (const float slope : c.rule.slopes) largest += std::abs(slope) * static_cast<double>(s.keys + s.queries);
    const double score = (4.0 * std::sqrt(static_cast<double>(s.key_size)) + 8.0) * kEpsilon * (largest + 1.0);
    const double terms = std::sqrt(static_cast<double>(std::max(s.queries * s.heads / s.key_heads, s.keys)));
    return 3.0 * score + (24.0 + 2.0 * terms) * kEpsilon;
}

/// Factor of dropout of one pair: 0 or 1 / (1 - p).
double kept(const AttentionCase& c, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
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

void compare(const char* what, const Values& found, std::int64_t b, std::int64_t h,
             const std::function<Sum(std::int64_t, std::int64_t)>& expected, double error) {
    for (std::int64_t i = 0; i < found.length; ++i) {
        REQUIRE(found.data[found.at(b, h, i, found.size)] == kCanary);
        for (std::int64_t c = 0; c < found.size; ++c) {
            const Sum sum = expected(i, c);
            const double difference = std::abs(double{found.data[found.at(b, h, i, c)]} - sum.value);
            if (difference <= error * sum.size + 1e-30) continue;
            INFO(what << " of sequence " << b << ", head " << h << ", row " << i << ", column " << c << ": found "
                      << found.data[found.at(b, h, i, c)] << ", expected " << sum.value << ", allowed "
                      << error * sum.size);
            REQUIRE(false);
        }
    }
}

/// d loss / d factor of the blocks of one head, from the definition: e^s over the row's sum, hidden or not.
std::vector<Sum> block_gradients(const AttentionCase& c, std::int64_t b, std::int64_t h, bool hidden_too) {
    const Shape& s = c.shape();
    ScoreRule open = c.rule;
    open.blocks = {};
    const SequenceBounds bounds = sequence_bounds(c.rule, b, s.queries, s.keys);
    const std::int64_t g = h / (s.heads / s.key_heads), size = c.rule.blocks.block_size;
    const Values gradient = output_gradient(s);
    std::vector<Sum> sums(static_cast<std::size_t>(c.rule.blocks.blocks));
    for (std::int64_t i = 0; i < s.queries; ++i) {
        std::vector<double> weight(static_cast<std::size_t>(s.keys), 0.0);
        std::vector<Sum> d_weight(weight.size());
        double total = 0.0;
        for (std::int64_t j = 0; j < s.keys; ++j) {
            if (!allowed(open, bounds, b, h, s.heads, i, j)) continue;
            const auto at = static_cast<std::size_t>(j);
            double dot = 0.0;
            for (std::int64_t x = 0; x < s.key_size; ++x)
                dot += double{c.get('q', b, h, i, x)} * double{c.get('k', b, g, j, x)};
            weight[at] = std::exp(score_of(c.rule, h, i, j, dot));
            for (std::int64_t x = 0; x < s.value_size; ++x) {
                const double term = kept(c, b, h, i, j) * double{gradient.data[gradient.at(b, h, i, x)]} *
                                    double{c.get('v', b, g, j, x)};
                d_weight[at].add(term, std::abs(term));
            }
            if (allowed(c.rule, bounds, b, h, s.heads, i, j)) total += weight[at];
        }
        if (total == 0.0) continue;
        Sum mean;
        for (std::int64_t j = 0; j < s.keys; ++j) {
            const auto at = static_cast<std::size_t>(j);
            weight[at] /= total;
            if (allowed(c.rule, bounds, b, h, s.heads, i, j))
                mean.add(weight[at] * d_weight[at].value, weight[at] * d_weight[at].size);
        }
        for (std::int64_t j = 0; j < s.keys; ++j) {
            const auto at = static_cast<std::size_t>(j);
            if (j / size == (i + c.rule.query_offset) / size) continue;
            if (!hidden_too && !allowed(c.rule, bounds, b, h, s.heads, i, j)) continue;
            sums[static_cast<std::size_t>(j / size)].add(weight[at] * (d_weight[at].value - mean.value),
                                                         weight[at] * (d_weight[at].size + mean.size));
        }
    }
    return sums;
}

void check_blocks(const AttentionCase& c, const Found& found, bool hidden_too) {
    const Shape& s = c.shape();
    for (std::int64_t b = 0; b < s.batch; ++b) {
        for (std::int64_t h = 0; h < s.heads; ++h) {
            const std::vector<Sum> expected = block_gradients(c, b, h, hidden_too);
            for (std::size_t n = 0; n < expected.size(); ++n) {
                const auto first = static_cast<std::size_t>((b * s.heads + h) * c.rule.blocks.blocks);
                const double block = double{found.blocks[first + n]};
                INFO("block " << n << " of sequence " << b << ", head " << h << ": found " << block << ", expected "
                              << expected[n].value);
                REQUIRE(std::abs(block - expected[n].value) <= weight_error(c) * expected[n].size + 1e-30);
            }
        }
    }
}

void check(const AttentionCase& c) {
    const Shape& s = c.shape();
    const Found found = run(c);
    const Values gradient = output_gradient(s);
    const double error = weight_error(c);
    const std::int64_t group = s.heads / s.key_heads;
    std::vector<std::vector<Book>> all_books;
    INFO(c.name << ", L " << s.queries << " x " << s.keys << ", H " << s.heads << " / " << s.key_heads << ", d "
                << s.key_size << " / " << s.value_size);
    for (std::int64_t b = 0; b < s.batch; ++b) {
        std::vector<Book>& books = all_books.emplace_back();
        for (std::int64_t h = 0; h < s.heads; ++h) books.emplace_back(c, b, h).drop();
        for (std::int64_t h = 0; h < s.heads; ++h) {
            const Book& book = books[static_cast<std::size_t>(h)];
            const auto over_keys = [&](const std::vector<double>& values, const std::vector<double>& sizes,
                                       char which) {
                return [&, which](std::int64_t i, std::int64_t x) {
                    Sum sum;
                    for (std::int64_t j = 0; j < s.keys; ++j) {
                        const bool seen = book.visible[book.cell(i, j)];
                        const double y = seen ? double{c.get(which, b, h / group, j, x)} : 0.0;
                        sum.add(values[book.cell(i, j)] * y, sizes[book.cell(i, j)] * std::abs(y));
                    }
                    return sum;
                };
            };
            compare("O", found.output, b, h, over_keys(book.weight, book.weight_size, 'v'), error);
            compare("dQ", found.query, b, h, over_keys(book.slope, book.slope_size, 'k'), error);
        }
        for (std::int64_t g = 0; g < s.key_heads; ++g) {
            const auto over_queries = [&](bool key) {
                return [&, key](std::int64_t j, std::int64_t x) {
                    Sum sum;
                    for (std::int64_t h = g * group; h < (g + 1) * group; ++h) {
                        const Book& book = books[static_cast<std::size_t>(h)];
                        for (std::int64_t i = 0; i < s.queries; ++i) {
                            const std::size_t at = book.cell(i, j);
                            if (!book.visible[at]) continue;
                            if (key)
                                sum.add(book.slope[at] * double{c.get('q', b, h, i, x)},
                                        book.slope_size[at] * std::abs(double{c.get('q', b, h, i, x)}));
                            else
                                sum.add(book.weight[at] * double{gradient.data[gradient.at(b, h, i, x)]},
                                        book.weight_size[at]);
                        }
                    }
                    return sum;
                };
            };
            compare("dK", found.key, b, g, over_queries(true), error);
            compare("dV", found.value, b, g, over_queries(false), error);
        }
    }
    if (has_block_gradients(c)) check_blocks(c, found, false);
    for (std::int64_t h = 0; h < s.heads; ++h) {
        Sum sink, offset;
        int undecided = 0;
        for (const auto& books : all_books) {
            const Book& book = books[static_cast<std::size_t>(h)];
            sink.add(book.d_sink.value, book.d_sink.size);
            offset.add(book.d_offset.value, book.d_offset.size);
            undecided += book.undecided;
        }
        // Any pair of elastic weights may lie near the cut; evenly spread weights cross it in proportion to their
        // error.
        const double pairs = static_cast<double>(c.rule.offsets.empty() ? 0 : s.batch * s.queries * s.keys);
        REQUIRE(undecided <= 1 + s.batch * s.queries / 100 + static_cast<std::int64_t>(4.0 * error * pairs));
        const double d_sink = double{found.sinks[static_cast<std::size_t>(h)]};
        if (c.rule.sink_logits.empty())
            REQUIRE(d_sink == double{kCanary});
        else
            REQUIRE(std::abs(d_sink - sink.value) <= error * sink.size + 1e-30);
        const double d_offset = double{found.offsets[static_cast<std::size_t>(h)]};
        if (c.rule.offsets.empty())
            REQUIRE(d_offset == double{kCanary});
        else
            REQUIRE(std::abs(d_offset - offset.value) <= error * offset.size + 1e-30);
    }
    for (std::int64_t h = 0; h < s.heads; ++h) {
        std::vector<Sum> table(static_cast<std::size_t>(c.rule.bias_length));
        for (const auto& books : all_books) {
            const Book& book = books[static_cast<std::size_t>(h)];
            for (std::int64_t i = 0; i < s.queries && !table.empty(); ++i) {
                for (std::int64_t j = 0; j < s.keys; ++j) {
                    const std::int64_t column = j - i - c.rule.query_offset + c.rule.bias_origin;
                    const std::int64_t inside = std::clamp<std::int64_t>(column, 0, c.rule.bias_length - 1);
                    if (column != inside && c.rule.beyond_table == BeyondTable::zero) continue;
                    const std::size_t at = book.cell(i, j);
                    table[static_cast<std::size_t>(inside)].add(book.slope[at] / c.rule.scale,
                                                                book.slope_size[at] / c.rule.scale);
                }
            }
        }
        for (std::size_t x = 0; x < table.size(); ++x) {
            const double d_bias = double{found.distance_bias[static_cast<std::size_t>(h) * table.size() + x]};
            INFO("distance bias " << x << " of head " << h << ": found " << d_bias << ", expected " << table[x].value);
            REQUIRE(std::abs(d_bias - table[x].value) <= error * table[x].size + 1e-30);
        }
    }
}

struct Forced {
    explicit Forced(const std::string& name) { force_backend(name); }
    ~Forced() { force_backend("auto"); }
};

using Option = std::pair<std::string, std::function<void(AttentionCase&)>>;

void see_blocks(AttentionCase& c, std::int64_t size) {
    auto& blocks = c.rule.blocks;
    blocks.block_size = size;
    blocks.blocks = (c.shape().keys + size - 1) / size;
    for (std::int64_t n = 0; n < c.shape().batch * c.shape().heads * blocks.blocks; ++n)
        blocks.visible.push_back(n % 3 == 1);
}

void blocks_seen(AttentionCase& c) {
    see_blocks(c, 20);
}

void padding_of_nan(AttentionCase& c) {
    const Shape& s = c.shape();
    for (std::int64_t b = 0; b < s.batch; ++b) {
        c.rule.query_length.push_back(s.queries - s.queries / 3 * b);
        c.rule.key_begin.push_back(s.keys / 5 * b);
        c.rule.key_length.push_back(s.keys - s.keys / 4 * b);
        const float nan = std::numeric_limits<float>::quiet_NaN();
        if (c.rule.key_length.back() < s.keys) c.set('v', b, 0, s.keys - 1, 0, nan);
        if (c.rule.key_begin.back() > 0) c.set('k', b, 0, 0, 0, nan);
    }
}

std::vector<Option> options() {
    return {
        {"causal", [](AttentionCase&) {}},
        {"everything visible", [](AttentionCase& c) { c.rule.causal = false; }},
        {"sharp", [](AttentionCase& c) { c.rule.scale *= 8.0; }},
        {"window", [](AttentionCase& c) { c.rule.window_left = 17; }},
        {"window and first keys",
         [](AttentionCase& c) {
             c.rule.window_left = 20;
             c.rule.first_keys = 3;
         }},
        {"window on both sides",
         [](AttentionCase& c) {
             c.rule.causal = false;
             c.rule.window_left = 30;
             c.rule.window_right = 5;
         }},
        {"queries later", [](AttentionCase& c) { c.rule.query_offset = 21; }},
        {"queries earlier than all keys", [](AttentionCase& c) { c.rule.query_offset = -10; }},
        {"sigmoid",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sigmoid;
             c.rule.distance_bias.assign(static_cast<std::size_t>(c.shape().heads), -0.75F);
             c.rule.bias_length = 1;
         }},
        {"sharp sigmoid in a window with first keys, soft cap, padding that holds NaN",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sigmoid;
             c.rule.window_left = 20;
             c.rule.first_keys = 3;
             c.rule.scale *= 6.0;
             c.rule.soft_cap = 2.5;
             padding_of_nan(c);
         }},
        {"Taylor weights, sharp",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::taylor;
             c.rule.scale *= 6.0;
         }},
        {"Taylor weights in a window, soft cap",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::taylor;
             c.rule.window_left = 17;
             c.rule.soft_cap = 2.5;
         }},
        {"sparsemax", [](AttentionCase& c) { c.rule.normaliser = Normaliser::sparsemax; }},
        {"sharp sparsemax, everything visible, soft cap",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sparsemax;
             c.rule.causal = false;
             c.rule.scale *= 8.0;
             c.rule.soft_cap = 2.5;
         }},
        {"sparsemax with sink logits and a window",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sparsemax;
             c.rule.window_left = 17;
             for (std::int64_t h = 0; h < c.shape().heads; ++h)
                 c.rule.sink_logits.push_back(static_cast<float>(h) * 0.5F - 0.5F);
         }},
        {"sparsemax with visible blocks",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sparsemax;
             blocks_seen(c);
         }},
        {"sparsemax, padding that holds NaN",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sparsemax;
             padding_of_nan(c);
         }},
        {"elastic, offsets either way, sharp",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::elastic;
             c.rule.scale *= 4.0;
             for (std::int64_t h = 0; h < c.shape().heads; ++h)
                 c.rule.offsets.push_back(static_cast<float>(h) * 0.75F - 1.0F);
         }},
        {"elastic, a bias over few distances",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::elastic;
             c.rule.offsets.assign(static_cast<std::size_t>(c.shape().heads), -1.0F);
             c.rule.bias_length = 33;
             c.rule.bias_origin = 32;
             c.rule.beyond_table = BeyondTable::zero;
             for (std::int64_t n = 0; n < c.shape().heads * 33; ++n)
                 c.rule.distance_bias.push_back(static_cast<float>(std::sin(static_cast<double>(n))));
         }},
        {"elastic with constant offsets, a window with first keys and a soft cap",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::elastic;
             c.rule.offset_form = OffsetForm::constant;
             for (std::int64_t h = 0; h < c.shape().heads; ++h)
                 c.rule.offsets.push_back(static_cast<float>(h) * 0.03125F - 0.0625F);
             c.rule.window_left = 20;
             c.rule.first_keys = 3;
             c.rule.soft_cap = 2.5;
         }},
        {"elastic, queries later and padding that holds NaN",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::elastic;
             c.rule.offsets.assign(static_cast<std::size_t>(c.shape().heads), -0.75F);
             c.rule.query_offset = 21;
             c.rule.scale *= 3.0;
             padding_of_nan(c);
         }},
        {"entmax", [](AttentionCase& c) { c.rule.normaliser = Normaliser::entmax; }},
        {"sharp entmax, everything visible, soft cap",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::entmax;
             c.rule.causal = false;
             c.rule.scale *= 8.0;
             c.rule.soft_cap = 2.5;
         }},
        {"entmax with sink logits and visible blocks",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::entmax;
             blocks_seen(c);
             for (std::int64_t h = 0; h < c.shape().heads; ++h)
                 c.rule.sink_logits.push_back(static_cast<float>(h) * 0.5F - 0.5F);
         }},
        {"entmax, padding that holds NaN",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::entmax;
             padding_of_nan(c);
         }},
        {"slopes",
         [](AttentionCase& c) {
             for (std::int64_t h = 0; h < c.shape().heads; ++h)
                 c.rule.slopes.push_back(0.25F / static_cast<float>(h + 1));
         }},
        {"distance biases, clamped beyond a short table",
         [](AttentionCase& c) {
             c.rule.bias_length = 21;
             c.rule.bias_origin = 17;
             for (std::int64_t x = 0; x < c.shape().heads * 21; ++x)
                 c.rule.distance_bias.push_back(static_cast<float>(std::sin(static_cast<double>(x))));
             c.rule.soft_cap = 3.0;
         }},
        {"distance biases, none beyond the table, both ways",
         [](AttentionCase& c) {
             c.rule.causal = false;
             c.rule.beyond_table = BeyondTable::zero;
             c.rule.bias_length = 31;
             c.rule.bias_origin = 15;
             for (std::int64_t x = 0; x < c.shape().heads * 31; ++x)
                 c.rule.distance_bias.push_back(static_cast<float>(std::cos(static_cast<double>(x))));
         }},
        {"soft cap",
         [](AttentionCase& c) {
             c.rule.soft_cap = 1.5;
             c.rule.scale *= 4.0;
         }},
        {"sink logits",
         [](AttentionCase& c) {
             for (std::int64_t h = 0; h < c.shape().heads; ++h)
                 c.rule.sink_logits.push_back(static_cast<float>(h) * 2.5F - 1.0F);
         }},
        {"visible blocks", blocks_seen},
        {"visible blocks, and the own one hidden",
         [](AttentionCase& c) {
             blocks_seen(c);
             c.rule.blocks.own = false;
         }},
        {"visible blocks and padding",
         [](AttentionCase& c) {
             blocks_seen(c);
             padding_of_nan(c);
         }},
        {"padding that holds NaN", padding_of_nan},
    };
}

AttentionCase make(const Shape& shape, const Option& option, ElementType type = ElementType::float32) {
    AttentionCase c(shape, static_cast<std::uint32_t>(shape.queries * 31 + shape.heads * 7 + shape.key_size), type);
    option.second(c);
    c.name = option.first;
    return c;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("gradients of attention agree with the formulas for odd lengths, heads and sizes", "[backward]") {
    const Option plain = options().front();
    for (const std::int64_t length : {1, 2, 47, 48, 49, 129, 200}) {
        check(make({1, 2, 2, length, length, 64, 64}, plain));
        check(make({2, 4, 2, length, length, 20, 12}, plain));
    }
    check(make({1, 3, 1, 100, 100, 1, 1}, plain));
    check(make({1, 2, 1, 65, 65, 80, 40}, plain));
    check(make({1, 2, 2, 30, 130, 16, 16}, options()[1]));
    check(make({1, 2, 2, 130, 30, 16, 16}, options()[1]));
}

TEST_CASE("gradients of attention agree with the formulas under every option", "[backward]") {
    for (const Option& option : options()) {
        check(make({2, 4, 2, 65, 65, 20, 20}, option));
        check(make({2, 3, 3, 150, 150, 16, 12}, option));
    }
}

TEST_CASE("gradients of blocks agree with the formula, hidden ones too, also where keys are shared out", "[backward]") {
    const std::vector<Option> all = options();
    for (const std::string& backend : available_backends()) {
        const Forced forced(backend);
        INFO(backend);
        for (const Option& option : all) {
            if (option.first.rfind("visible blocks", 0) != 0) continue;
            for (const std::int64_t size : {20, 64}) {
                AttentionCase c = make({2, 4, 2, 150, 150, 16, 12}, option);
                c.rule.blocks = {};
                see_blocks(c, size);
                c.rule.blocks.own = option.first.find("hidden") == std::string::npos;
                INFO(option.first << ", blocks of " << size);
                check(c);
                const Found both = run(c, true);
                check_blocks(c, both, true);
                CHECK(same(both.key.data, run(c).key.data));
            }
        }
    }
    AttentionCase c = make({1, 2, 1, 900, 1700, 8, 8}, all.front());
    c.rule.query_offset = 800;
    see_blocks(c, 70);
    check(c);
    set_threads(1);
    const Found one = run(c, true);
    check_blocks(c, one, true);
    set_threads(3);
    CHECK(same(run(c, true).blocks, one.blocks));
    set_threads(0);
}

TEST_CASE("gradients of bfloat16 inputs are those of their values", "[backward]") {
    for (const std::size_t option : {0U, 3U})
        check(make({2, 4, 2, 129, 129, 20, 20}, options()[option], ElementType::bfloat16));
}

TEST_CASE("bfloat16 gradients are the float32 ones rounded", "[backward]") {
    const AttentionCase c = make({1, 4, 2, 70, 70, 24, 18}, options().front());
    const Shape& s = c.shape();
    const Found wide = run(c);
    Found again(s);
    const auto as_half = [](Values& values) {
        MutableView view = values.view();
        view.type = ElementType::bfloat16;
        return view;
    };
    const SoftmaxRows rows{again.shift.data(), again.factor.data()};
    attention_forward(c.input(), as_half(again.output), rows);
    const auto expect_rounded = [&](const Values& half, const Values& single) {
        const auto* found = reinterpret_cast<const std::uint16_t*>(half.data.data());
        for (std::int64_t h = 0; h < half.heads; ++h)
            for (std::int64_t i = 0; i < half.length; ++i)
                for (std::int64_t x = 0; x < half.size; ++x) {
                    const std::uint32_t bits = std::bit_cast<std::uint32_t>(single.data[single.at(0, h, i, x)]);
                    REQUIRE(found[half.at(0, h, i, x)] == (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
                }
    };
    expect_rounded(again.output, wide.output);
    attention_backward(c.input(), wide.output.input(1), output_gradient(s).input(1), rows,
                       {as_half(again.query), as_half(again.key), as_half(again.value)});
    expect_rounded(again.query, wide.query);
    expect_rounded(again.key, wide.key);
    expect_rounded(again.value, wide.value);
}

TEST_CASE("every SIMD target and the reference give the gradients", "[backward][targets]") {
    for (const std::string& name : available_backends()) {
        const Forced forced(name);
        INFO("backend " << name);
        for (const Option& option : options()) check(make({2, 2, 1, 65, 65, 20, 20}, option));
        REQUIRE(last_backend() == name);
    }
}

TEST_CASE("sparsemax gradients agree where keys are shared out, for odd lengths and in bfloat16", "[backward]") {
    const std::vector<Option> all = options();
    const auto sparsemax =
        std::find_if(all.begin(), all.end(), [](const Option& option) { return option.first == "sparsemax"; });
    REQUIRE(sparsemax != all.end());
    for (const std::int64_t length : {1, 2, 63, 64, 65, 200})
        check(make({2, 6, 3, length, length, 20, 12}, *sparsemax));
    check(make({1, 2, 1, 65, 1700, 8, 8}, *(sparsemax + 1)));
    check(make({2, 4, 2, 129, 129, 20, 20}, *sparsemax, ElementType::bfloat16));
}

TEST_CASE("elastic and entmax gradients agree for odd lengths, keys that are shared out, and in bfloat16",
          "[backward]") {
    const std::vector<Option> all = options();
    for (const char* start : {"elastic, offsets", "elastic, a bias", "entmax"}) {
        const auto option =
            std::find_if(all.begin(), all.end(), [&](const Option& one) { return one.first.rfind(start, 0) == 0; });
        REQUIRE(option != all.end());
        for (const std::int64_t length : {1, 2, 63, 64, 65, 300})
            check(make({2, 6, 3, length, length, 20, 12}, *option));
        check(make({1, 2, 1, 65, 1700, 8, 8}, *option));
        check(make({2, 4, 2, 129, 129, 20, 20}, *option, ElementType::bfloat16));
    }
}

TEST_CASE("sigmoid gradients agree where keys are shared out, for odd lengths and in bfloat16", "[backward]") {
    const std::vector<Option> all = options();
    const auto sigmoid =
        std::find_if(all.begin(), all.end(), [](const Option& option) { return option.first == "sigmoid"; });
    REQUIRE(sigmoid != all.end());
    for (const std::int64_t length : {1, 2, 63, 64, 65, 200}) check(make({2, 6, 3, length, length, 20, 12}, *sigmoid));
    check(make({1, 2, 1, 65, 1700, 8, 8}, *sigmoid));
    check(make({2, 4, 2, 129, 129, 20, 20}, *sigmoid, ElementType::bfloat16));
}

TEST_CASE("gradients have the same bits for every thread count, also where keys are shared out", "[backward]") {
    for (const auto& [shape, elastic] :
         {std::pair{Shape{2, 4, 2, 150, 150, 16, 16}, false}, std::pair{Shape{1, 2, 1, 900, 1700, 8, 8}, false},
          std::pair{Shape{2, 4, 2, 150, 150, 16, 16}, true}, std::pair{Shape{1, 2, 1, 900, 1700, 8, 8}, true}}) {
        AttentionCase c = make(shape, options()[1]);
        c.rule.bias_length = 9;
        c.rule.bias_origin = 4;
        c.rule.distance_bias.assign(static_cast<std::size_t>(shape.heads * 9), 0.25F);
        c.rule.sink_logits.assign(static_cast<std::size_t>(shape.heads), 0.5F);
        if (elastic) {
            c.rule.sink_logits.clear();
            c.rule.normaliser = Normaliser::elastic;
            c.rule.offsets.assign(static_cast<std::size_t>(shape.heads), -0.875F);
        }
        set_threads(1);
        const Found one = run(c);
        for (const int number : {2, 5}) {
            set_threads(number);
            const Found more = run(c);
            CHECK(same(more.offsets, one.offsets));
            CHECK(same(more.output.data, one.output.data));
            CHECK(same(more.query.data, one.query.data));
            CHECK(same(more.key.data, one.key.data));
            CHECK(same(more.value.data, one.value.data));
            CHECK(same(more.distance_bias, one.distance_bias));
            CHECK(same(more.sinks, one.sinks));
        }
        set_threads(0);
        if (shape.keys > 1000) check(c);
    }
}

TEST_CASE("the training passes refuse what they do not know", "[backward]") {
    AttentionCase c = make({1, 1, 1, 4, 4, 8, 8}, options().front());
    Found found(c.shape());
    const SoftmaxRows rows{found.shift.data(), found.factor.data()};
    CHECK_THROWS_AS(attention_forward(c.input(), found.output.view(), SoftmaxRows{}), Error);
    CHECK_THROWS_AS(attention_forward(c.input(), MutableView{}, rows), Error);
    const Values wrong(1, 1, 5, 8);
    CHECK_THROWS_AS(attention_backward(c.input(), wrong.input(1), wrong.input(1), rows, {}), Error);
    CHECK_THROWS_WITH(attention_backward(c.input(), found.output.input(1), found.output.input(1), rows,
                                         {{}, {}, {}, found.sinks.data()}),
                      Catch::Contains("[sinks] expected a rule with learned sinks"));
    CHECK_THROWS_WITH(attention_backward(c.input(), found.output.input(1), found.output.input(1), rows,
                                         {{}, {}, {}, nullptr, nullptr, nullptr, false, found.offsets.data()}),
                      Catch::Contains("[offsets] expected a rule with offsets"));
    std::vector<float> blocks(1);
    CHECK_THROWS_WITH(attention_backward(c.input(), found.output.input(1), found.output.input(1), rows,
                                         {{}, {}, {}, nullptr, nullptr, blocks.data()}),
                      Catch::Contains("[blocks] expected a rule with visible blocks"));
    c.rule.normaliser = Normaliser::taylor_diagonal;
    CHECK_THROWS_WITH(
        attention_forward(c.input(), found.output.view(), rows),
        Catch::Contains("[normaliser] expected softmax, sparsemax, taylor, elastic, entmax or sigmoid: ") &&
            Catch::Contains("found taylor_diagonal"));
}

TEST_CASE("gradients with dropped weights agree with the formulas under every option", "[backward][dropout]") {
    for (const std::string& name : available_backends()) {
        const Forced forced(name);
        INFO("backend " << name);
        for (const Option& option : options()) {
            AttentionCase c = make({2, 4, 2, 65, 65, 20, 12}, option);
            c.rule.dropout = {0.3, 91, 3};
            check(c);
        }
    }
    for (const std::int64_t length : {1, 2, 63, 64, 200}) {
        AttentionCase c = make({2, 4, 2, length, length, 16, 12}, options().front());
        c.rule.dropout = {0.3, 92, 0};
        check(c);
    }
    AttentionCase c = make({1, 2, 1, 65, 1700, 8, 8}, options()[1]);  // keys are shared out
    c.rule.dropout = {0.3, 93, 0};
    check(c);
}

TEST_CASE("dropped weights are the same for every thread count and split of the batch", "[backward][dropout]") {
    AttentionCase c = make({4, 4, 2, 130, 130, 16, 12}, options().front());
    c.rule.dropout = {0.3, 17, 0};
    set_threads(1);
    const Found one = run(c);
    for (const int count : {2, 5}) {
        set_threads(count);
        const Found more = run(c);
        CHECK(same(more.output.data, one.output.data));
        CHECK(same(more.query.data, one.query.data));
        CHECK(same(more.key.data, one.key.data));
        CHECK(same(more.value.data, one.value.data));
    }
    set_threads(0);
    // Sequences 2 and 3 alone, as a later pass of the step.
    AttentionCase half = make({2, 4, 2, 130, 130, 16, 12}, options().front());
    for (const char which : {'q', 'k', 'v'}) {
        for (std::int64_t b = 0; b < 2; ++b)
            for (std::int64_t h = 0; h < (which == 'q' ? 4 : 2); ++h)
                for (std::int64_t i = 0; i < 130; ++i)
                    for (std::int64_t x = 0; x < (which == 'v' ? 12 : 16); ++x)
                        half.set(which, b, h, i, x, c.get(which, b + 2, h, i, x));
    }
    half.rule.dropout = {0.3, 17, 2};
    const Found later = run(half);
    const std::size_t size = later.output.data.size();
    CHECK(
        same(later.output.data, {one.output.data.begin() + static_cast<std::ptrdiff_t>(size), one.output.data.end()}));
    half.rule.dropout.first_sequence = 0;
    CHECK_FALSE(same(run(half).output.data, later.output.data));
}

TEST_CASE("dropout of share 0 changes no bit", "[backward][dropout]") {
    AttentionCase c = make({2, 4, 2, 65, 65, 20, 12}, options().front());
    const Found plain = run(c);
    c.rule.dropout = {0.0, 99, 7};
    const Found none = run(c);
    CHECK(same(none.output.data, plain.output.data));
    CHECK(same(none.query.data, plain.query.data));
    CHECK(same(none.key.data, plain.key.data));
    CHECK(same(none.value.data, plain.value.data));
}

TEST_CASE("pairs are dropped with the share's probability, each for itself", "[backward][dropout]") {
    constexpr std::int64_t kRowCount = 200, kKeyCount = 300;
    const std::uint32_t threshold = dropout_threshold(0.3);
    const auto dropped = [&](std::int64_t i, std::int64_t j) {
        const std::int64_t sequence = i / 100, head = i / 10 % 10;
        const std::uint64_t row = dropout_row(dropout_sequence({0.3, 5, 0}, sequence), head, i % 10);
        return dropout_bits(row, j) < threshold;
    };
    double single = 0, beside = 0, below = 0;
    for (std::int64_t i = 0; i < kRowCount; ++i) {
        for (std::int64_t j = 0; j < kKeyCount; ++j) {
            single += dropped(i, j) ? 1 : 0;
            beside += dropped(i, j) && dropped(i, j + 1) ? 1 : 0;
            below += dropped(i, j) && dropped((i + 1) % kRowCount, j) ? 1 : 0;
        }
    }
    // Five deviations of a binomial; pairs of pairs share terms, which at most triples their variance.
    const double count = kRowCount * kKeyCount;
    CHECK(std::abs(single / count - 0.3) < 5 * std::sqrt(0.3 * 0.7 / count));
    CHECK(std::abs(beside / count - 0.09) < 5 * std::sqrt(3 * 0.09 * 0.91 / count));
    CHECK(std::abs(below / count - 0.09) < 5 * std::sqrt(3 * 0.09 * 0.91 / count));
}

TEST_CASE("statistics and bad shares refuse dropout", "[backward][dropout]") {
    AttentionCase c = make({1, 2, 1, 5, 5, 8, 8}, options().front());
    c.rule.dropout.share = 0.5;
    std::vector<float> output(2 * 5 * 8);
    REQUIRE_THROWS_WITH(attention(c.input(), {output.data(), 80, 40, 8}),
                        Catch::Contains("[attention dropout] expected none outside of training; found 0.5"));
    for (const double share : {-0.1, 1.0, std::nan("")}) {
        c.rule.dropout.share = share;
        REQUIRE_THROWS_WITH(run(c), Catch::Contains("[attention dropout] expected a share"));
    }
}
