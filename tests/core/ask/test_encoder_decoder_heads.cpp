// SPDX-License-Identifier: GPL-3.0-or-later
// ask sinks of models with an encoder and a decoder against plain sums over the weights of a run.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>

#include "core/ask/sinks.h"
#include "core/model/config.h"
#include "tests/core/ask/recorded_values.h"
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
