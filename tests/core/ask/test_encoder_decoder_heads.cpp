// SPDX-License-Identifier: GPL-3.0-or-later
// ask sinks, kinds and cache of models with an encoder and a decoder against plain sums over the weights of a run.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>

#include "core/ask/cache/cache.h"
#include "core/ask/kinds.h"
#include "core/ask/sinks.h"
#include "core/model/config.h"
#include "tests/core/ask/recorded_values.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/head_edit.h"

using namespace headscope;
using model::Point;
using test::at_cell;
using test::near;
using test::values_of_batch;

namespace {

constexpr double kMassThreshold = 0.15;

store::AskRecord sinks_of_two(const test::AskedModel& asked, model::Editor* editor = nullptr) {
    store::AskRecord record = asked.record("sinks");
    ask::SinksOptions options;
    options.epsilon = kMassThreshold;
    options.editor = editor;
    NoProgress progress;
    ask::run_sinks(*asked.model, options, record, progress, Cancellation());
    return record;
}

/// Weights [queries, keys] of one head.
double weight_at(const at::Tensor& weights, std::int64_t query, std::int64_t key) {
    return weights[query][key].item<double>();
}

/// Mean over rows of the entropy of the weights of keys from `first` on, scaled to sum to 1. Rows without one of these
/// keys do not count.
double entropy_of_rows(const at::Tensor& weights, bool causal, std::int64_t first) {
    double sum = 0, rows = 0;
    for (std::int64_t i = 0; i < weights.size(0); ++i) {
        const std::int64_t keys = causal ? i + 1 : weights.size(1);
        double mass = 0;
        for (std::int64_t j = first; j < keys; ++j) mass += weight_at(weights, i, j);
        if (mass <= 0) continue;
        ++rows;
        for (std::int64_t j = first; j < keys; ++j) {
            const double p = weight_at(weights, i, j) / mass;
            if (p > 0) sum -= p * std::log(p);
        }
    }
    return sum / rows;
}

store::AskRecord kinds_of_two(const test::AskedModel& asked, const ask::KindsOptions& options) {
    store::AskRecord record = asked.record("kinds");
    NoProgress progress;
    ask::run_kinds(*asked.model, options, record, progress, Cancellation());
    return record;
}

/// True where a head of the kind attends to tokens of its own text.
bool attends_to(const std::string& kind, const std::vector<std::int64_t>& text, std::int64_t i, std::int64_t j) {
    const auto token = [&](std::int64_t position) { return text[static_cast<std::size_t>(position)]; };
    if (kind == "previous") return j == i - 1;
    if (kind == "duplicate") return j < i && token(j) == token(i);
    if (kind == "induction") return j >= 1 && j <= i && token(j - 1) == token(i);
    return j == i;
}

/// The share of the weights that lies there, and 1 - the mean absolute difference of a row.
std::pair<double, double> kind_scores(const std::string& kind, const std::vector<std::int64_t>& text,
                                      const at::Tensor& weights, bool exclude) {
    double hit = 0, sum = 0, apart = 0;
    for (std::int64_t i = 0; i < weights.size(0); ++i)
        for (std::int64_t j = 0; j < weights.size(1); ++j) {
            if (exclude && (j == 0 || i == j)) continue;
            const double there = attends_to(kind, text, i, j) ? 1 : 0, weight = weight_at(weights, i, j);
            hit += weight * there;
            sum += weight;
            apart += std::abs(weight - there);
        }
    return {hit / sum, 1 - apart / static_cast<double>(weights.size(0))};
}

/// The batch of a text without its first source token.
model::Batch without_first(const test::AskedModel& asked, std::size_t text) {
    model::Batch batch = asked.batch(text);
    batch.ids = batch.ids.narrow(1, 1, batch.ids.size(1) - 1).contiguous();
    return batch;
}

}  // namespace

TEST_CASE("Sinks of an encoder-decoder are those of the weights of each attention", "[ask][sinks][encoder-decoder]") {
    for (const std::string name : {"t5", "bart", "umt5"}) {
        INFO(name);
        const test::AskedModel asked(name);
        const store::AskRecord record = sinks_of_two(asked);
        CHECK(record.complete);
        const std::int64_t tokens = record.size_of("/token");
        const std::size_t cells = record.sites.size() * static_cast<std::size_t>(tokens);
        std::vector<double> above(cells), all(cells);
        for (std::int64_t s = 0; s < 2; ++s) {
            const auto text = static_cast<std::size_t>(s);
            const auto values = values_of_batch(asked, asked.batch(text), {Point::pattern, Point::value});
            const auto shorter = values_of_batch(asked, without_first(asked, text), {Point::pattern});
            for (std::int64_t site = 0; site < std::ssize(record.sites); ++site) {
                INFO("text " << s << ", site " << site);
                const Site& own = record.sites[static_cast<std::size_t>(site)];
                const bool causal = own.stack == "decoder" && !own.is_cross();
                const model::PointKey key{Point::pattern, own.layer, site};
                const at::Tensor pattern = values.at(key)[0];
                REQUIRE(pattern.size(0) == own.heads);
                const std::int64_t queries = pattern.size(1), keys = pattern.size(2);
                for (std::int64_t head = 0; head < own.heads; ++head) {
                    const at::Tensor weights = pattern[head].contiguous();
                    double secondary = 0;
                    for (std::int64_t k = 0; k < keys; ++k) {
                        const std::int64_t first = causal ? k : 0;
                        double mass = 0;
                        for (std::int64_t i = first; i < queries; ++i) mass += weight_at(weights, i, k);
                        mass /= static_cast<double>(queries - first);
                        REQUIRE(near(at_cell(record, "/sinks/column_mass", {s, site, head, k}), mass, 1e-5));
                        // Rounding decides nothing at the threshold.
                        REQUIRE(std::abs(mass - kMassThreshold) > 1e-6);
                        const auto cell = static_cast<std::size_t>(site * tokens + k);
                        ++all[cell];
                        above[cell] += mass > kMassThreshold ? 1 : 0;
                        secondary += k > 0 && mass > kMassThreshold ? 1 : 0;
                    }
                    for (std::int64_t k = keys; k < tokens; ++k)
                        CHECK(std::isnan(at_cell(record, "/sinks/column_mass", {s, site, head, k})));
                    const std::vector<std::int64_t> index{s, site, head};
                    CHECK(at_cell(record, "/sinks/secondary", index) == secondary);
                    // The mean weight of the first key is the indicator.
                    CHECK(near(at_cell(record, "/sinks/sink", index),
                               at_cell(record, "/sinks/column_mass", {s, site, head, 0}), 1e-5));
                    CHECK(std::isnan(at_cell(record, "/sinks/duplicate", index)) == own.is_cross());
                    CHECK(near(at_cell(record, "/sinks/entropy_row_mean", index), entropy_of_rows(weights, causal, 0)));
                    CHECK(near(at_cell(record, "/sinks/entropy_row_mean_without_first_column", index),
                               entropy_of_rows(weights, causal, 1)));
                    CHECK(near(at_cell(record, "/sinks/entropy_row_mean_without_first_token", index),
                               entropy_of_rows(shorter.at(key)[0][head], causal, 0)));
                }
                const at::Tensor value = values.at({Point::value, own.layer, site})[0];
                CHECK(value.size(1) == keys);
                for (std::int64_t g = 0; g < value.size(0); ++g)
                    CHECK(near(at_cell(record, "/sinks/value_norm", {s, site, g, keys - 1}),
                               value[g][keys - 1].norm().item<double>(), 1e-5));
            }
        }
        for (std::int64_t site = 0; site < std::ssize(record.sites); ++site)
            for (std::int64_t k = 0; k < tokens; ++k) {
                const auto cell = static_cast<std::size_t>(site * tokens + k);
                const double rate = at_cell(record, "/sinks/rate_by_site", {site, k});
                CHECK((all[cell] > 0 ? near(rate, above[cell] / all[cell]) : std::isnan(rate)));
            }
    }
}

TEST_CASE("Boundaries of both stacks have activations", "[ask][sinks][encoder-decoder]") {
    for (const std::string name : {"t5", "umt5"}) {
        INFO(name);
        const test::AskedModel asked(name);
        const store::AskRecord record = sinks_of_two(asked);
        const std::int64_t encoder = asked.model->config().encoder->layers, layers = asked.model->config().all_layers();
        CHECK(record.size_of("/boundary") == layers + 2);
        const auto values = values_of_batch(asked, asked.batch(1), {Point::residual_before, Point::hidden});
        const auto check = [&](std::int64_t boundary, const at::Tensor& stream) {
            INFO("boundary " << boundary);
            const std::int64_t length = stream.size(1);
            for (std::int64_t p = 0; p < length; ++p)
                CHECK(near(at_cell(record, "/sinks/hidden_norm", {1, boundary, p}), stream[0][p].norm().item<double>(),
                           1e-6));
            CHECK(std::isnan(at_cell(record, "/sinks/hidden_norm", {1, boundary, length})));
            CHECK(near(std::abs(at_cell(record, "/sinks/activation_maximum", {1, boundary})),
                       stream.abs().max().item<double>(), 1e-6));
        };
        for (std::int64_t layer = 0; layer < layers; ++layer)
            check(layer < encoder ? layer : layer + 1, values.at({Point::residual_before, layer, -1}));
        check(encoder, values.at({Point::hidden, encoder - 1, -1}));
        check(layers + 1, values.at({Point::hidden, layers - 1, -1}));
    }
}

TEST_CASE("Edits of source positions move in the run without the first source token, others do not",
          "[ask][sinks][encoder-decoder]") {
    test::AskedModel whole("umt5"), shorter("umt5");
    for (test::AskedModel* asked : {&whole, &shorter}) {
        asked->texts.resize(1);
        asked->targets.resize(1);
    }
    shorter.texts[0].erase(shorter.texts[0].begin());
    const std::int64_t rest = std::ssize(shorter.texts[0]);
    REQUIRE(whole.model->sites().at(3).is_cross());
    const model::PointKey cross{Point::pattern, whole.model->sites().at(3).layer, 3};
    const at::Tensor half = values_of_batch(whole, whole.batch(0), {Point::pattern}).at(cross)[0] * 0.5;
    const auto edited = [](const test::AskedModel& asked, std::int64_t position, const at::Tensor& weights) {
        model::Intervention source = test::head_edit(asked.model->sites(), 0, 1);
        source.positions = {{position, position}};
        model::Intervention target = test::head_edit(asked.model->sites(), 2, 1);
        target.positions = {{1, 1}};
        model::Intervention between = test::head_edit(asked.model->sites(), 3, 0, model::Action::set);
        between.point = Point::pattern;
        between.heads.clear();
        between.value = weights;
        model::Interventions edits({source, target, between}, asked.model->config(), asked.model->sites());
        return sinks_of_two(asked, &edits);
    };
    const store::AskRecord one = edited(whole, 3, half);
    const store::AskRecord two = edited(shorter, 2, half.narrow(2, 1, rest));
    for (std::int64_t site = 0; site < std::ssize(one.sites); ++site)
        for (std::int64_t head = 0; head < one.sites[static_cast<std::size_t>(site)].heads; ++head)
            CHECK(near(at_cell(one, "/sinks/entropy_row_mean_without_first_token", {0, site, head}),
                       at_cell(two, "/sinks/entropy_row_mean", {0, site, head}), 1e-6));
}

TEST_CASE("Kinds of heads of an encoder-decoder count the tokens of their own text", "[ask][kinds][encoder-decoder]") {
    struct Same final : model::Editor {
        bool edits(const model::PointKey& key) const override { return key.point == Point::pattern; }
        at::Tensor edit(const model::EditPlace&, const at::Tensor& value) override { return value; }
    } same;
    for (const std::string name : {"t5", "bart", "umt5"}) {
        test::AskedModel asked(name);
        asked.texts = {{3, 5, 3, 7, 5, 3, 3, 8}, {4, 6, 4}};
        asked.targets = {{2, 9, 7, 9, 7, 7}, {2, 5, 6, 2, 5, 6}};
        for (const bool exclude : {false, true})
            for (const bool in_memory : {false, true}) {
                INFO(name << ", exclude " << exclude << ", in memory " << in_memory);
                ask::KindsOptions options;
                options.exclude_first = options.exclude_current = exclude;
                if (in_memory) options.editor = &same;
                const store::AskRecord record = kinds_of_two(asked, options);
                CHECK(record.complete);
                for (std::int64_t s = 0; s < 2; ++s) {
                    const auto text = static_cast<std::size_t>(s);
                    const auto values = values_of_batch(asked, asked.batch(text), {Point::pattern});
                    for (std::int64_t site = 0; site < std::ssize(record.sites); ++site) {
                        INFO("text " << s << ", site " << site);
                        const Site& own = record.sites[static_cast<std::size_t>(site)];
                        const auto& tokens = own.stack == "decoder" ? asked.targets[text] : asked.texts[text];
                        const at::Tensor weights = values.at({Point::pattern, own.layer, site})[0][1].contiguous();
                        for (const std::string kind : {"previous", "duplicate", "induction", "self"}) {
                            const double share = at_cell(record, "/kinds/" + kind, {s, site, 1});
                            const double absolute = at_cell(record, "/kinds/" + kind + "_absolute", {s, site, 1});
                            if (own.is_cross()) {
                                CHECK(std::isnan(share));
                                CHECK(std::isnan(absolute));
                                continue;
                            }
                            const auto [expected, near_to] = kind_scores(kind, tokens, weights, exclude);
                            CHECK(near(share, expected, 1e-5));
                            CHECK(near(absolute, near_to, 1e-5));
                        }
                    }
                }
            }
    }
}

TEST_CASE("A needle is refused of an encoder-decoder by name", "[ask][kinds][encoder-decoder]") {
    const test::AskedModel asked("t5");
    ask::KindsOptions options;
    options.needle = model::PositionRange{0, 1};
    options.generate = 1;
    CHECK_THROWS_MATCHES(kinds_of_two(asked, options), Error,
                         test::IsError(ErrorCode::usage, "[--needle] expected a decoder"));
}

TEST_CASE("A smaller cache of a decoder behind an encoder drops keys of its own input",
          "[ask][cache][encoder-decoder]") {
    using ask::cache::Scorer;
    constexpr std::int64_t context = 4;
    constexpr std::size_t kept = 2;
    test::AskedModel asked("umt5");
    asked.texts.resize(1);
    asked.targets.resize(1);
    ask::cache::CacheOptions options;
    options.scorers = {Scorer::tova, Scorer::h2o};
    options.ratios = {0.5};
    options.scoring.context = context;
    store::AskRecord record = asked.record("cache");
    NoProgress progress;
    ask::cache::run_cache(*asked.model, options, record, progress, Cancellation());
    CHECK(record.complete);
    const auto values = values_of_batch(asked, asked.batch(0), {Point::pattern, Point::value});
    for (std::int64_t site = 0; site < std::ssize(record.sites); ++site) {
        INFO("site " << site);
        const Site& own = record.sites[static_cast<std::size_t>(site)];
        if (own.stack == "encoder" || own.is_cross()) {
            CHECK(std::isnan(at_cell(record, "/cache/h2o/error", {0, 0, site, 0})));
            continue;
        }
        const at::Tensor pattern = values.at({Point::pattern, own.layer, site})[0];
        const at::Tensor value = values.at({Point::value, own.layer, site})[0];
        REQUIRE(value.size(0) == own.heads);
        const std::int64_t length = pattern.size(1);
        for (std::int64_t head = 0; head < own.heads; ++head) {
            const at::Tensor weights = pattern[head].contiguous();
            std::vector<std::pair<double, std::int64_t>> order;
            for (std::int64_t j = 0; j < context; ++j) {
                double mass = 0;
                for (std::int64_t i = j; i < context; ++i) mass += weight_at(weights, i, j);
                order.emplace_back(-mass / static_cast<double>(context - j), j);
            }
            std::sort(order.begin(), order.end());
            std::vector<std::int64_t> stays;
            for (std::size_t k = 0; k < kept; ++k) stays.push_back(order[k].second);
            std::sort(stays.begin(), stays.end());
            for (std::size_t k = 0; k < kept; ++k)
                CHECK(at_cell(record, "/cache/h2o/kept", {0, 0, site, head, static_cast<std::int64_t>(k)}) ==
                      static_cast<double>(stays[k]));
            double apart = 0, whole = 0;
            for (std::int64_t i = context; i < length; ++i) {
                at::Tensor left = weights[i].clone();
                for (std::int64_t j = 0; j < context; ++j)
                    if (std::find(stays.begin(), stays.end(), j) == stays.end()) left[j] = 0;
                const at::Tensor output = weights[i].matmul(value[head]);
                const at::Tensor other = left.matmul(value[head]) / left.sum();
                apart += (other - output).square().sum().item<double>();
                whole += output.square().sum().item<double>();
            }
            CHECK(near(at_cell(record, "/cache/h2o/error", {0, 0, site, head}), std::sqrt(apart / whole)));
        }
    }
    options.scoring.context = 10;  // all of the decoder's input
    store::AskRecord refused = asked.record("cache");
    CHECK_THROWS_MATCHES(ask::cache::run_cache(*asked.model, options, refused, progress, Cancellation()), Error,
                         test::IsError(ErrorCode::usage, "fewer than the 10 tokens of target 0"));
}
