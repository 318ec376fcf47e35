// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include "core/ask/sinks.h"
#include "core/model/trainable.h"
#include "tests/core/ask/recorded_values.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/native_model.h"

using namespace headscope;
using model::Point;
using test::at_cell;
using test::near;

namespace {

constexpr double kSinkEpsilon = 0.2;

store::AskRecord sinks_of(const test::AskedModel& asked) {
    store::AskRecord record = asked.record("sinks");
    ask::SinksOptions options;
    options.epsilon = kSinkEpsilon;
    NoProgress progress;
    ask::run_sinks(*asked.model, options, record, progress, Cancellation());
    return record;
}

double entry(const at::Tensor& tensor, std::initializer_list<std::int64_t> index) {
    at::Tensor part = tensor;
    for (const std::int64_t one : index) part = part[one];
    return part.item<double>();
}

/// Mean over rows of -sum p log p, p: the weights of keys from `first` on, scaled to sum to 1.
double entropy_of(const at::Tensor& pattern, std::int64_t first) {
    double sum = 0;
    const std::int64_t length = pattern.size(0);
    for (std::int64_t i = first; i < length; ++i) {
        double mass = 0;
        for (std::int64_t j = first; j <= i; ++j) mass += entry(pattern, {i, j});
        for (std::int64_t j = first; j <= i; ++j) {
            const double p = entry(pattern, {i, j}) / mass;
            if (p > 0) sum -= p * std::log(p);
        }
    }
    return sum / static_cast<double>(length - first);
}

}  // namespace

TEST_CASE("Column masses and sink rates are those of the patterns", "[ask][sinks]") {
    for (const std::string name : {"gpt2", "llama", "hybrid-qwen3-next"}) {
        INFO(name);
        const test::AskedModel asked(name);
        const store::AskRecord record = sinks_of(asked);
        CHECK(record.complete);
        const std::int64_t tokens = record.size_of("/token");
        std::vector<double> above(static_cast<std::size_t>(tokens)), all = above;
        for (std::int64_t s = 0; s < 2; ++s) {
            const auto& text = asked.texts[static_cast<std::size_t>(s)];
            const auto values = recorded_values(asked, text, {Point::pattern});
            const auto shorter =
                recorded_values(asked, std::vector<std::int64_t>(text.begin() + 1, text.end()), {Point::pattern});
            for (std::int64_t site = 0; site < std::ssize(record.sites); ++site) {
                const model::PointKey key{Point::pattern, record.sites[static_cast<std::size_t>(site)].layer, site};
                if (!values.contains(key)) {
                    CHECK(std::isnan(at_cell(record, "/sinks/column_mass", {s, site, 0, 0})));
                    continue;
                }
                const at::Tensor pattern = values.at(key)[0];
                for (std::int64_t head = 0; head < pattern.size(0); ++head) {
                    std::int64_t secondary = 0;
                    for (std::int64_t k = 0; k < tokens; ++k) {
                        double mass = 0;
                        for (std::int64_t i = k; i < tokens; ++i) mass += entry(pattern, {head, i, k});
                        mass /= static_cast<double>(tokens - k);
                        REQUIRE(near(at_cell(record, "/sinks/column_mass", {s, site, head, k}), mass, 1e-5));
                        // Rounding decides nothing at the threshold.
                        REQUIRE(std::abs(mass - kSinkEpsilon) > 1e-6);
                        ++all[static_cast<std::size_t>(k)];
                        above[static_cast<std::size_t>(k)] += mass > kSinkEpsilon;
                        secondary += k > 0 && mass > kSinkEpsilon;
                    }
                    CHECK(at_cell(record, "/sinks/secondary", {s, site, head}) == static_cast<double>(secondary));
                    CHECK(near(at_cell(record, "/sinks/entropy_row_mean", {s, site, head}),
                               entropy_of(pattern[head], 0)));
                    CHECK(near(at_cell(record, "/sinks/entropy_row_mean_without_first_column", {s, site, head}),
                               entropy_of(pattern[head], 1)));
                    CHECK(near(at_cell(record, "/sinks/entropy_row_mean_without_first_token", {s, site, head}),
                               entropy_of(shorter.at(key)[0][head], 0)));
                }
            }
        }
        for (std::int64_t k = 0; k < tokens; ++k)
            CHECK(near(at_cell(record, "/sinks/rate", {k}),
                       above[static_cast<std::size_t>(k)] / all[static_cast<std::size_t>(k)]));
        // Threshold 3 is 0.2, too.
        CHECK(near(at_cell(record, "/sinks/threshold", {3}), kSinkEpsilon));
        CHECK(near(at_cell(record, "/sinks/rate_by_threshold", {3}), above[0] / all[0]));
    }
}

TEST_CASE("The sink rate counts softmax sites, and its split all sites with weights", "[ask][sinks]") {
    const auto trainable = model::Trainable::create(test::native_config({"standard", "sigmoid"}).dump(), 3, at::kFloat);
    store::AskRecord record;
    record.tool = "sinks";
    record.mixers = trainable->model().mixers();
    record.sites = trainable->model().sites();
    for (const std::vector<std::int32_t>& ids : {std::vector<std::int32_t>{3, 9, 4, 9, 1}, {7, 2, 2, 8, 20}}) {
        store::SequenceTokens text;
        text.ids = ids;
        text.pieces.assign(ids.size(), "x");
        record.sequences.push_back(std::move(text));
    }
    store::add_usual_dimensions(record);
    ask::SinksOptions options;
    options.epsilon = kSinkEpsilon;
    NoProgress progress;
    ask::run_sinks(trainable->model(), options, record, progress, Cancellation());
    CHECK(at_cell(record, "/sinks/softmax", {0}) == 1);
    CHECK(at_cell(record, "/sinks/softmax", {1}) == 0);
    const std::int64_t heads = record.sites[0].heads;
    double first[2] = {};
    for (std::int64_t site = 0; site < 2; ++site)
        for (std::int64_t k = 0; k < 5; ++k) {
            double above = 0;
            for (std::int64_t s = 0; s < 2; ++s)
                for (std::int64_t head = 0; head < heads; ++head)
                    above += at_cell(record, "/sinks/column_mass", {s, site, head, k}) > kSinkEpsilon;
            const double share = above / static_cast<double>(2 * heads);
            CHECK(near(at_cell(record, "/sinks/rate_by_site", {site, k}), share));
            if (site == 0) CHECK(near(at_cell(record, "/sinks/rate", {k}), share));
            if (k == 0) first[site] = share;
        }
    CHECK(near(at_cell(record, "/sinks/rate_by_threshold", {3}), first[0]));
    CHECK(first[0] != first[1]);  // else the test shows nothing
}

TEST_CASE("Activations and norms are those of the residual stream and the values", "[ask][sinks]") {
    const test::AskedModel asked("llama");
    const store::AskRecord record = sinks_of(asked);
    const std::int64_t layers = asked.model->config().layers;
    const auto values = recorded_values(asked, asked.texts[1], {Point::residual_before, Point::hidden, Point::value});
    for (std::int64_t b = 0; b <= layers; ++b) {
        const at::Tensor stream =
            b < layers ? values.at({Point::residual_before, b, -1})[0] : values.at({Point::hidden, layers - 1, -1})[0];
        std::vector<double> sizes;
        double largest = 0;
        std::int64_t position = 0, channel = 0;
        for (std::int64_t p = 0; p < stream.size(0); ++p) {
            double squares = 0;
            for (std::int64_t c = 0; c < stream.size(1); ++c) {
                const double value = entry(stream, {p, c});
                sizes.push_back(std::abs(value));
                squares += value * value;
                if (std::abs(value) <= std::abs(largest)) continue;
                largest = value;
                position = p;
                channel = c;
            }
            CHECK(near(at_cell(record, "/sinks/hidden_norm", {1, b, p}), std::sqrt(squares), 1e-6));
        }
        std::sort(sizes.begin(), sizes.end());
        const std::size_t half = sizes.size() / 2;
        const double median = sizes.size() % 2 == 1 ? sizes[half] : (sizes[half - 1] + sizes[half]) / 2;
        CHECK(near(at_cell(record, "/sinks/activation_median", {1, b}), median, 1e-6));
        CHECK(near(at_cell(record, "/sinks/activation_maximum", {1, b}), largest, 1e-6));
        CHECK(at_cell(record, "/sinks/activation_position", {1, b}) == static_cast<double>(position));
        CHECK(at_cell(record, "/sinks/activation_channel", {1, b}) == static_cast<double>(channel));
        CHECK(near(at_cell(record, "/sinks/token_maximum", {1, b, position}), largest, 1e-6));
    }
    const at::Tensor value = values.at({Point::value, 1, 1})[0];
    for (std::int64_t g = 0; g < value.size(0); ++g)
        for (std::int64_t p = 0; p < value.size(1); ++p)
            CHECK(near(at_cell(record, "/sinks/value_norm", {1, 1, g, p}), value[g][p].norm().item<double>(), 1e-6));
}

TEST_CASE("Norms of values are those of all heads of a recurrent layer, too", "[ask][sinks]") {
    for (const std::string name : {"hybrid-qwen3-next", "hybrid-falcon-h1"}) {
        INFO(name);
        const test::AskedModel asked(name);
        const store::AskRecord record = sinks_of(asked);
        for (std::int64_t s = 0; s < 2; ++s) {
            for (const auto& [key, all] :
                 recorded_values(asked, asked.texts[static_cast<std::size_t>(s)], {Point::value})) {
                const at::Tensor value = all[0];
                REQUIRE(value.size(0) <= record.size_of("/key_value_head"));
                for (std::int64_t g = 0; g < value.size(0); ++g)
                    for (std::int64_t p = 0; p < value.size(1); ++p)
                        REQUIRE(near(at_cell(record, "/sinks/value_norm", {s, key.site, g, p}),
                                     value[g][p].norm().item<double>(), 1e-5));
            }
        }
    }
}

TEST_CASE("Massive activations are counted where the stream has them", "[ask][sinks]") {
    const test::AskedModel asked("llama");
    store::AskRecord record = asked.record("sinks");
    model::Intervention large;
    large.point = Point::hidden;
    large.layers = {asked.model->config().layers - 1};
    large.action = model::Action::set;
    large.positions = {{2, 2}};
    large.value = at::zeros({asked.model->config().hidden});
    large.value[3] = -1e6;
    large.value[5] = 99;
    model::Interventions edits({large}, asked.model->config(), asked.model->sites());
    ask::SinksOptions options;
    options.editor = &edits;
    NoProgress progress;
    ask::run_sinks(*asked.model, options, record, progress, Cancellation());
    const std::int64_t last = asked.model->config().layers;
    CHECK(at_cell(record, "/sinks/massive", {0, last}) == 1);
    CHECK(at_cell(record, "/sinks/activation_maximum", {0, last}) == -1e6);
    CHECK(at_cell(record, "/sinks/activation_position", {0, last}) == 2);
    CHECK(at_cell(record, "/sinks/activation_channel", {0, last}) == 3);
    CHECK(at_cell(record, "/sinks/massive", {0, 0}) == 0);
}

TEST_CASE("Edits are of the same tokens in the run without the first one", "[ask][sinks]") {
    const test::AskedModel whole("llama");
    test::AskedModel shorter("llama");
    for (auto& text : shorter.texts) text.erase(text.begin());
    const std::int64_t rest = std::ssize(shorter.texts[0]);
    const at::Tensor half =
        recorded_values(whole, whole.texts[0], {Point::pattern}).at({Point::pattern, 0, 0})[0] * 0.5;
    const auto edited = [](const test::AskedModel& asked, std::int64_t position, const at::Tensor& weights) {
        model::Intervention zero, other;
        zero.layers = other.layers = {0};
        zero.positions = {{position, position}};
        other.point = Point::pattern;
        other.action = model::Action::set;
        other.value = weights;
        model::Interventions edits({zero, other}, asked.model->config(), asked.model->sites());
        store::AskRecord record = asked.record("sinks");
        ask::SinksOptions options;
        options.editor = &edits;
        NoProgress progress;
        ask::run_sinks(*asked.model, options, record, progress, Cancellation());
        return record;
    };
    const store::AskRecord one = edited(whole, 3, half);
    const store::AskRecord two = edited(shorter, 2, half.narrow(1, 1, rest).narrow(2, 1, rest));
    for (std::int64_t head = 0; head < one.sites[1].heads; ++head)
        CHECK(near(at_cell(one, "/sinks/entropy_row_mean_without_first_token", {0, 1, head}),
                   at_cell(two, "/sinks/entropy_row_mean", {0, 1, head}), 1e-6));
}

TEST_CASE("Texts of one token have sinks and no second run", "[ask][sinks]") {
    test::AskedModel asked("llama");
    asked.texts[0].resize(1);
    const store::AskRecord record = sinks_of(asked);
    CHECK(near(at_cell(record, "/sinks/column_mass", {0, 0, 0, 0}), 1));
    CHECK(std::isnan(at_cell(record, "/sinks/column_mass", {0, 0, 0, 1})));
    CHECK(std::isnan(at_cell(record, "/sinks/sink_without_first_token", {0, 0, 0})));
    CHECK(std::isnan(at_cell(record, "/sinks/entropy_row_mean_without_first_column", {0, 0, 0})));
    CHECK(!std::isnan(at_cell(record, "/sinks/sink_without_first_token", {1, 0, 0})));
}

TEST_CASE("A resumed run of ask sinks computes the texts that are missing", "[ask][sinks]") {
    const test::AskedModel asked("llama");
    const store::AskRecord whole = sinks_of(asked);
    store::AskRecord begun = asked.record("sinks");
    struct Once final : std::exception {};
    ask::SinksOptions options;
    options.epsilon = kSinkEpsilon;
    options.saved = [] { throw Once(); };
    NoProgress progress;
    CHECK_THROWS_AS(ask::run_sinks(*asked.model, options, begun, progress, Cancellation()), Once);
    CHECK(!begun.complete);
    CHECK(std::isnan(at_cell(begun, "/sinks/hidden_norm", {1, 0, 0})));
    options.saved = nullptr;
    int steps = 0;
    options.saved = [&] { ++steps; };
    ask::run_sinks(*asked.model, options, begun, progress, Cancellation());
    CHECK(steps == 1);
    for (std::size_t t = 0; t < whole.tables.size(); ++t) {
        INFO(whole.tables[t].path);
        const auto &a = whole.tables[t].values, &b = begun.tables[t].values;
        REQUIRE(a.size() == b.size());
        for (std::size_t i = 0; i < a.size(); ++i) REQUIRE((a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))));
    }
}

TEST_CASE("ask sinks refuses edits of scores, which its weights would not show", "[ask][sinks]") {
    const test::AskedModel asked("llama");
    store::AskRecord record = asked.record("sinks");
    model::Intervention forbidden;
    forbidden.point = Point::scores;
    forbidden.action = model::Action::forbid;
    forbidden.layers = {1};
    forbidden.keys = {{0, 0}};
    model::Interventions edits({forbidden}, asked.model->config(), asked.model->sites());
    ask::SinksOptions options;
    options.editor = &edits;
    NoProgress progress;
    CHECK_THROWS_MATCHES(ask::run_sinks(*asked.model, options, record, progress, Cancellation()), Error,
                         test::IsError(ErrorCode::unsupported, "found one in layer 1"));
}

TEST_CASE("ask sinks refuses encoders by name", "[ask][sinks]") {
    const test::AskedModel asked("bert");
    CHECK_THROWS_MATCHES(sinks_of(asked), Error,
                         test::IsError(ErrorCode::usage, "expected a decoder; found an encoder"));
}
