// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernels/backward_case.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "kernels/attention_backward.h"
#include "kernels/score_pairs.h"
#include "tests/kernels/backward_book.h"

namespace headscope::kernels::testing::backward {

namespace {

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

}  // namespace

Values output_gradient(const Shape& s) {
    Values gradient(s.batch, s.heads, s.queries, s.value_size);
    for (std::size_t n = 0; n < gradient.data.size(); ++n)
        gradient.data[n] = static_cast<float>(std::sin(static_cast<double>(n) * 0.37));
    return gradient;
}

bool has_block_gradients(const AttentionCase& c) {
    return c.rule.blocks.block_size > 0 && c.rule.normaliser == Normaliser::softmax;
}

Found run(const AttentionCase& c, bool hidden_blocks) {
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

bool same(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace headscope::kernels::testing::backward
