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
#include "kernels/score_rule.h"
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
          factor(shift.size()) {}
    Values output, query, key, value;
    std::vector<float> shift, factor;
};

/// d loss / d O: the numbers of some sine, [batch, heads, queries, value_size].
Values output_gradient(const Shape& s) {
    Values gradient(s.batch, s.heads, s.queries, s.value_size);
    for (std::size_t n = 0; n < gradient.data.size(); ++n)
        gradient.data[n] = static_cast<float>(std::sin(static_cast<double>(n) * 0.37));
    return gradient;
}

Found run(const AttentionCase& c) {
    const Shape& s = c.shape();
    Found found(s);
    const SoftmaxRows rows{found.shift.data(), found.factor.data()};
    attention_forward(c.input(), found.output.view(), rows);
    attention_backward(c.input(), found.output.input(s.batch), output_gradient(s).input(s.batch), rows,
                       {found.query.view(), found.key.view(), found.value.view()});
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

/// One head by the book.
class Book {
public:
    Book(const AttentionCase& c, std::int64_t b, std::int64_t h) : c_(c), s_(c.shape()), b_(b), h_(h) {
        const ScoreRule& rule = c.rule;
        const SequenceBounds bounds = sequence_bounds(rule, b, s_.queries, s_.keys);
        const std::int64_t g = h / (s_.heads / s_.key_heads);
        weight.assign(static_cast<std::size_t>(s_.queries * s_.keys), 0.0);
        slope = slope_size = weight;
        const Values gradient = output_gradient(s_);
        for (std::int64_t i = 0; i < s_.queries; ++i) {
            std::vector<double> score(static_cast<std::size_t>(s_.keys), 0.0);
            std::vector<bool> seen(score.size());
            double largest = -1e300;
            for (std::int64_t j = 0; j < s_.keys; ++j) {
                seen[index(j)] = allowed(rule, bounds, b, h, s_.heads, i, j);
                if (!seen[index(j)]) continue;
                double dot = 0.0;
                for (std::int64_t x = 0; x < s_.key_size; ++x)
                    dot += double{c.get('q', b, h, i, x)} * double{c.get('k', b, g, j, x)};
                score[index(j)] = score_of(rule, h, i, j, dot);
                largest = std::max(largest, score[index(j)]);
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
                weight[cell(i, j)] = part(score[index(j)]) / total;
                for (std::int64_t x = 0; x < s_.value_size; ++x) {
                    const double term = double{gradient.data[gradient.at(b, h, i, x)]} * double{c.get('v', b, g, j, x)};
                    d_weight[index(j)].add(term, std::abs(term));
                }
                mean.add(weight[cell(i, j)] * d_weight[index(j)].value, weight[cell(i, j)] * d_weight[index(j)].size);
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
    std::size_t cell(std::int64_t i, std::int64_t j) const { return index(i * s_.keys + j); }
    std::vector<double> weight, slope, slope_size;

private:
    static std::size_t index(std::int64_t n) { return static_cast<std::size_t>(n); }
    const AttentionCase& c_;
    const Shape s_;
    std::int64_t b_, h_;
};

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

void check(const AttentionCase& c) {
    const Shape& s = c.shape();
    const Found found = run(c);
    const Values gradient = output_gradient(s);
    const double error = weight_error(c);
    const std::int64_t group = s.heads / s.key_heads;
    INFO(c.name << ", L " << s.queries << " x " << s.keys << ", H " << s.heads << " / " << s.key_heads << ", d "
                << s.key_size << " / " << s.value_size);
    for (std::int64_t b = 0; b < s.batch; ++b) {
        std::vector<Book> books;
        for (std::int64_t h = 0; h < s.heads; ++h) books.emplace_back(c, b, h);
        for (std::int64_t h = 0; h < s.heads; ++h) {
            const Book& book = books[static_cast<std::size_t>(h)];
            const auto over_keys = [&](const std::vector<double>& values, const std::vector<double>& sizes,
                                       char which) {
                return [&, which](std::int64_t i, std::int64_t x) {
                    Sum sum;
                    for (std::int64_t j = 0; j < s.keys; ++j) {
                        const bool seen = book.weight[book.cell(i, j)] != 0.0;
                        const double y = seen ? double{c.get(which, b, h / group, j, x)} : 0.0;
                        sum.add(values[book.cell(i, j)] * y, sizes[book.cell(i, j)] * std::abs(y));
                    }
                    return sum;
                };
            };
            compare("O", found.output, b, h, over_keys(book.weight, book.weight, 'v'), error);
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
                            if (book.weight[at] == 0.0) continue;
                            if (key)
                                sum.add(book.slope[at] * double{c.get('q', b, h, i, x)},
                                        book.slope_size[at] * std::abs(double{c.get('q', b, h, i, x)}));
                            else
                                sum.add(book.weight[at] * double{gradient.data[gradient.at(b, h, i, x)]},
                                        book.weight[at]);
                        }
                    }
                    return sum;
                };
            };
            compare("dK", found.key, b, g, over_queries(true), error);
            compare("dV", found.value, b, g, over_queries(false), error);
        }
    }
}

struct Forced {
    explicit Forced(const std::string& name) { force_backend(name); }
    ~Forced() { force_backend("auto"); }
};

using Option = std::pair<std::string, std::function<void(AttentionCase&)>>;

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
        {"slopes",
         [](AttentionCase& c) {
             for (std::int64_t h = 0; h < c.shape().heads; ++h)
                 c.rule.slopes.push_back(0.25F / static_cast<float>(h + 1));
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
        {"visible blocks",
         [](AttentionCase& c) {
             auto& blocks = c.rule.blocks;
             blocks.block_size = 20;
             blocks.blocks = (c.shape().keys + 19) / 20;
             for (std::int64_t n = 0; n < c.shape().batch * c.shape().heads * blocks.blocks; ++n)
                 blocks.visible.push_back(n % 3 == 1);
         }},
        {"padding that holds NaN",
         [](AttentionCase& c) {
             const Shape& s = c.shape();
             for (std::int64_t b = 0; b < s.batch; ++b) {
                 c.rule.query_length.push_back(s.queries - s.queries / 3 * b);
                 c.rule.key_begin.push_back(s.keys / 5 * b);
                 c.rule.key_length.push_back(s.keys - s.keys / 4 * b);
                 const float nan = std::numeric_limits<float>::quiet_NaN();
                 if (c.rule.key_length.back() < s.keys) c.set('v', b, 0, s.keys - 1, 0, nan);
                 if (c.rule.key_begin.back() > 0) c.set('k', b, 0, 0, 0, nan);
             }
         }},
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

TEST_CASE("gradients have the same bits for every thread count, also where keys are shared out", "[backward]") {
    for (const Shape& shape : {Shape{2, 4, 2, 150, 150, 16, 16}, Shape{1, 2, 1, 900, 1700, 8, 8}}) {
        AttentionCase c = make(shape, options()[1]);
        set_threads(1);
        const Found one = run(c);
        for (const int number : {2, 5}) {
            set_threads(number);
            const Found more = run(c);
            CHECK(same(more.output.data, one.output.data));
            CHECK(same(more.query.data, one.query.data));
            CHECK(same(more.key.data, one.key.data));
            CHECK(same(more.value.data, one.value.data));
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
    c.rule.normaliser = Normaliser::sparsemax;
    CHECK_THROWS_AS(attention_forward(c.input(), found.output.view(), rows), Error);
}
