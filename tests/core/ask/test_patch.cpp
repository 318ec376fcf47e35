// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <ATen/TensorOperators.h>

#include "core/ask/approximate.h"
#include "core/ask/cells.h"
#include "core/ask/patch.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using ask::SweepBy;
using model::Action;
using model::Intervention;
using model::Point;
using test::at_cell;
using test::IsError;
using test::near;

namespace {

ask::Metric difference() {
    ask::Metric metric;
    metric.kind = ask::MetricKind::logit_difference;
    metric.answer = {3};
    metric.against = {5, 7};
    return metric;
}

/// That metric at the last position, at one in the middle, and at all.
std::vector<ask::Metric> differences() {
    std::vector<ask::Metric> all(3, difference());
    all[1].position = 4;
    all[2].all_positions = true;
    return all;
}

double value_of(const test::AskedModel& asked, const at::Tensor& hidden, const ask::Metric& metric = difference()) {
    const at::Tensor logits = asked.model->logits(hidden).to(at::kDouble);
    const at::Tensor each = logits.select(1, 3) - (logits.select(1, 5) + logits.select(1, 7)) / 2;
    if (metric.all_positions) return each.mean().item<double>();
    return each[metric.position < 0 ? each.size(0) + metric.position : metric.position].item<double>();
}

/// A model with two texts of 20 tokens.
test::AskedModel with_long_texts(const std::string& name) {
    test::AskedModel asked(name);
    asked.texts.assign(2, std::vector<std::int64_t>(20));
    for (std::int64_t i = 0; i < 20; ++i) {
        asked.texts[0][static_cast<std::size_t>(i)] = (i * 7 + i * i * 3 + 5) % 37;
        asked.texts[1][static_cast<std::size_t>(i)] = (i * 5 + i * i * 2 + 11) % 37;
    }
    return asked;
}

/// The clean text is text 1, the corrupted one text 0.
store::AskRecord patched(const test::AskedModel& asked, ask::PatchOptions options,
                         const ask::Metric& metric = difference()) {
    store::AskRecord record = asked.record("patch");
    record.sequences.resize(1);
    record.dimensions.clear();
    store::add_usual_dimensions(record);
    options.metric = metric;
    NoProgress progress;
    ask::run_patch(*asked.model, {asked.sequences()[1]}, options, record, progress, Cancellation());
    return record;
}

/// The same cell by an intervention on the values of the clean run.
double by_hand(const test::AskedModel& asked, Intervention what, const ask::Metric& metric = difference()) {
    const auto places = model::places_of(what.point, asked.model->config(), asked.model->sites());
    model::PointRecorder recorder(std::set<model::PointKey>(places.begin(), places.end()));
    model::Batch batch;
    batch.ids = asked.ids(1);
    model::ForwardOptions options;
    options.editor = &recorder;
    asked.model->forward(batch, options);
    what.action = Action::run;
    what.values = recorder.values;
    return value_of(asked, asked.run(0, {what}), metric);
}

}  // namespace

TEST_CASE("Each patched cell is the corrupted run with one value of the clean one", "[ask][patch]") {
    for (const std::string name : {"gpt2", "llama", "gemma2", "hybrid-qwen3-next"}) {
        INFO(name);
        const test::AskedModel asked(name);
        const std::int64_t layers = asked.model->config().layers, length = std::ssize(asked.texts[0]);
        ask::PatchOptions options;
        options.points = {Point::residual_before, Point::attention_output, Point::head_output, Point::value};
        const store::AskRecord record = patched(asked, options);
        CHECK(record.complete);
        CHECK(near(at_cell(record, "/patch/clean", {0}), value_of(asked, asked.run(1))));
        CHECK(near(at_cell(record, "/patch/corrupted", {0}), value_of(asked, asked.run(0))));
        for (std::int64_t layer = 0; layer < layers; ++layer) {
            for (const std::int64_t position : {std::int64_t{0}, length - 1}) {
                Intervention what;
                what.point = Point::attention_output;
                what.layers = {layer};
                what.positions = {{position, position}};
                CHECK(
                    near(at_cell(record, "/patch/value/attention_output", {0, layer, position}), by_hand(asked, what)));
                what.point = Point::residual_before;
                CHECK(
                    near(at_cell(record, "/patch/value/residual_before", {0, layer, position}), by_hand(asked, what)));
            }
        }
        for (const Point point : {Point::head_output, Point::value}) {
            const model::PointKey key = model::places_of(point, asked.model->config(), asked.model->sites()).back();
            Intervention what;
            what.point = point;
            what.layers = {key.layer};
            what.heads = {1};
            const std::string path = "/patch/value/" + std::string(model::name(point));
            CHECK(near(at_cell(record, path, {0, key.site, 1}), by_hand(asked, what)));
        }
        CHECK(at_cell(record, "/patch/value/residual_before", {0, 0, 1}) !=
              at_cell(record, "/patch/value/residual_before", {0, 0, 2}));
    }
}

TEST_CASE("Heads may be swept by position, and patterns cell by cell", "[ask][patch]") {
    const test::AskedModel asked("llama");
    ask::PatchOptions options;
    options.points = {Point::pattern};
    options.by = SweepBy::both;
    Intervention what;
    what.point = Point::pattern;
    what.layers = {1};
    what.heads = {2};
    what.positions = {{10, 10}};
    CHECK(near(at_cell(patched(asked, options), "/patch/value/pattern", {0, 1, 2, 10}), by_hand(asked, what)));
    options.by = SweepBy::position;
    what.heads = {};
    CHECK(near(at_cell(patched(asked, options), "/patch/value/pattern", {0, 1, 10}), by_hand(asked, what)));
    options.by = SweepBy::cell;
    const store::AskRecord cells = patched(asked, options);
    CHECK(at_cell(cells, "/patch/value/pattern", {0, 1, 2, 10, 3}) != at_cell(cells, "/patch/corrupted", {0}));
    // A weight of 0 in both runs: nothing changes.
    CHECK(
        near(at_cell(cells, "/patch/value/pattern", {0, 1, 2, 3, 10}), at_cell(cells, "/patch/corrupted", {0}), 1e-5));
    options.points = {Point::head_output};
    CHECK_THROWS_MATCHES(patched(asked, options), Error, IsError(ErrorCode::usage, "--by cell"));
}

TEST_CASE("Sweeps agree with whole runs of one cell, whichever positions the metric reads", "[ask][patch]") {
    constexpr double rounding = 2e-5;  // of float32, where logits reach 12
    for (const std::string name :
         {"gpt2", "llama", "neox", "deepseek-v3", "bloom", "hybrid-qwen3-next", "hybrid-falcon-h1"}) {
        const test::AskedModel asked = with_long_texts(name);
        const auto& sites = asked.model->sites();
        for (const ask::Metric& metric : differences()) {
            for (const SweepBy by : {SweepBy::head, SweepBy::both}) {
                INFO(name << " position " << metric.position << (by == SweepBy::head ? " by head" : " by both"));
                ask::PatchOptions options;
                options.points = {Point::head_output, Point::attention_output};
                options.by = by;
                const store::AskRecord record = patched(asked, options, metric);
                for (const model::PointKey& key : model::places_of(Point::head_output, asked.model->config(), sites)) {
                    const Site& site = sites[static_cast<std::size_t>(key.site)];
                    Intervention what;
                    what.point = Point::head_output;
                    what.layers = {key.layer};
                    what.attention = site.branch.empty() ? site.kind : site.branch;
                    for (std::int64_t head = 0; head < model::heads_at(key, sites); ++head) {
                        what.heads = {head};
                        std::vector<std::int64_t> cell{0, key.site, head};
                        if (by == SweepBy::both) {
                            what.positions = {{head, head}};  // any position
                            cell.push_back(head);
                        }
                        CHECK(near(at_cell(record, "/patch/value/head_output", cell), by_hand(asked, what, metric),
                                   rounding));
                    }
                }
                for (std::int64_t layer = 0; layer < asked.model->config().layers; ++layer) {
                    Intervention what;
                    what.point = Point::attention_output;
                    what.layers = {layer};
                    what.positions = {{3, 3}};
                    CHECK(near(at_cell(record, "/patch/value/attention_output", {0, layer, 3}),
                               by_hand(asked, what, metric), rounding));
                }
            }
        }
    }
}

TEST_CASE("A sweep starts from values of the unedited run that are given", "[ask][patch]") {
    for (const std::string name : {"gpt2", "llama", "hybrid-qwen3-next"}) {
        INFO(name);
        const test::AskedModel asked = with_long_texts(name);
        const auto& sites = asked.model->sites();
        const ask::TextInput text = ask::text_input(asked.sequences()[0]),
                             other = ask::text_input(asked.sequences()[1]);
        const Cancellation cancellation;
        const auto places = ask::places_ahead(*asked.model, text.tokens());
        REQUIRE(std::ssize(places) >= asked.model->config().layers);
        const ask::RunValues ahead = ask::record_run(*asked.model, other, places, nullptr, cancellation, nullptr);
        REQUIRE(ahead.size() == places.size());
        std::vector<ask::Cell> cells;
        const model::PointKey key = model::places_of(Point::head_output, asked.model->config(), sites).back();
        for (std::int64_t head = 0; head < model::heads_at(key, sites); ++head) {
            ask::Cell cell{key, head};
            cell.how = ask::Cell::How::zero;
            cell.result = cells.size();
            cells.push_back(cell);
        }
        const ask::Measure measure(*asked.model, difference());
        const auto sweep = [&](const ask::TextInput& read, const ask::RunValues* values) {
            std::vector<double> found(cells.size());
            ask::run_cells(
                *asked.model, read, cells, nullptr, measure, nullptr, cancellation,
                [&](const ask::Cell& cell, double value) { found[cell.result] = value; }, values);
            return found;
        };
        // Values of another text stand out: behind the first layer they are all that a sweep reads of the text.
        const std::vector<double> plain = sweep(text, nullptr), swapped = sweep(text, &ahead);
        const std::vector<double> expected = sweep(other, nullptr);
        double apart = 0;
        for (std::size_t i = 0; i < cells.size(); ++i) {
            CHECK(near(swapped[i], expected[i], 1e-5));
            apart = std::max(apart, std::abs(swapped[i] - plain[i]));
        }
        CHECK(apart > 1e-3);
    }
}

TEST_CASE("Long texts and encoder-decoders store no values ahead", "[ask][patch]") {
    const test::AskedModel asked("llama"), both("t5");
    CHECK(ask::places_ahead(*asked.model, std::int64_t{1} << 24).empty());
    CHECK(ask::places_ahead(*both.model, 8).empty());
}

TEST_CASE("Guide streams pass through all layers in a sweep", "[ask][patch]") {
    for (const std::string name : {"native-rnd_emb_qk", "native-fixed_seq_qk"}) {
        INFO(name);
        const test::AskedModel asked = with_long_texts(name);
        ask::PatchOptions options;
        options.points = {Point::head_output};
        options.by = SweepBy::both;  // enough cells for batches of the last layer alone
        const store::AskRecord record = patched(asked, options);
        Intervention what;
        what.point = Point::head_output;
        what.layers = {1};
        for (const std::int64_t head : {0, 3}) {
            what.heads = {head};
            what.positions = {{6, 6}};
            CHECK(near(at_cell(record, "/patch/value/head_output", {0, 1, head, 6}), by_hand(asked, what)));
        }
    }
}

TEST_CASE("Layers without a pattern have no numbers", "[ask][patch]") {
    const test::AskedModel asked("hybrid-qwen3-next");
    ask::PatchOptions options;
    options.points = {Point::pattern};
    const store::AskRecord record = patched(asked, options);
    for (std::int64_t i = 0; i < std::ssize(record.sites); ++i)
        CHECK(std::isnan(at_cell(record, "/patch/value/pattern", {0, i, 0})) ==
              !record.sites[static_cast<std::size_t>(i)].has_matrix);
}

TEST_CASE("Texts pair by equal length, or by their edges", "[ask][patch]") {
    using ask::Alignment;
    CHECK(ask::aligned({1, 2}, {3, 4}, Alignment::equal, 0) == std::vector<std::int64_t>{0, 1});
    CHECK_THROWS_MATCHES(ask::aligned({1, 2, 3}, {1, 2}, Alignment::equal, 4), Error,
                         IsError(ErrorCode::usage, "[pair 4] 3 and 2 tokens; use --align edges"));
    CHECK(ask::aligned({1, 2, 9, 8, 5}, {1, 2, 7, 5}, Alignment::edges, 0) == std::vector<std::int64_t>{0, 1, -1, 4});
    CHECK(ask::aligned({1, 1}, {1, 1, 1}, Alignment::edges, 0) == std::vector<std::int64_t>{0, 1, -1});
    CHECK(ask::aligned({1, 2, 1}, {1, 1}, Alignment::edges, 0) == std::vector<std::int64_t>{0, 2});
    const test::AskedModel asked("llama");
    ask::PatchOptions options;
    options.points = {Point::head_output};
    options.alignment = Alignment::edges;
    CHECK_THROWS_MATCHES(patched(asked, options), Error, IsError(ErrorCode::usage, "--align edges"));
}

TEST_CASE("Metrics refuse tokens that they do not read, or lack", "[ask][metric]") {
    const test::AskedModel asked("llama");
    const auto refused = [&](const ask::Metric& metric, const char* part) {
        CHECK_THROWS_MATCHES(metric.check(*asked.model), Error, IsError(ErrorCode::usage, part));
    };
    ask::Metric metric = difference();
    metric.check(*asked.model);
    metric.answer = {};
    refused(metric, "[--answer] expected tokens for --metric logit_difference; found none");
    metric = difference();
    metric.kind = ask::MetricKind::loss;
    refused(metric, "[--answer] expected none for --metric loss");
    metric.answer = {};
    refused(metric, "[--against] expected none for --metric loss");
    metric = difference();
    metric.against = {-1};
    refused(metric, "[--against] expected tokens from 0");
    metric = difference();
    metric.against = {5, 7, 5};
    refused(metric, "[--against] expected each token once; found 5 twice");
}

TEST_CASE("The divergence at all positions needs texts of one length", "[ask][patch]") {
    const test::AskedModel asked("llama");
    store::AskRecord record = asked.record("patch");
    record.sequences.resize(1);
    record.dimensions.clear();
    store::add_usual_dimensions(record);
    std::vector<store::SequenceTokens> clean{asked.sequences()[0]};
    clean[0].ids.erase(clean[0].ids.begin() + 2);
    ask::PatchOptions options;
    options.points = {Point::hidden};
    options.alignment = ask::Alignment::edges;
    options.metric.kind = ask::MetricKind::kl;
    NoProgress progress;
    const auto run = [&] { ask::run_patch(*asked.model, clean, options, record, progress, Cancellation()); };
    options.metric.all_positions = true;
    CHECK_THROWS_MATCHES(run(), Error, IsError(ErrorCode::usage, "[--position] expected an index for --metric kl"));
    options.metric.all_positions = false;
    run();
    CHECK(record.complete);
}

TEST_CASE("Metrics refuse texts without their position or a next token", "[ask][metric]") {
    std::vector<store::SequenceTokens> texts(2);
    texts[0].ids = {1, 2, 3};
    texts[1].ids = {4};
    const auto refused = [&](const ask::Metric& metric, const char* part) {
        CHECK_THROWS_MATCHES(metric.check_texts(texts), Error, IsError(ErrorCode::usage, part));
    };
    ask::Metric metric = difference();
    metric.check_texts(texts);
    metric.position = -2;
    refused(metric, "[--position] expected a position from -1 to 0 of text 1; found -2");
    metric.position = 3;
    refused(metric, "[--position] expected a position from -3 to 2 of text 0; found 3");
    metric.all_positions = true;
    metric.check_texts(texts);
    metric.kind = ask::MetricKind::loss;
    refused(metric, "[--metric] expected texts of at least 2 tokens for loss; found 1 in text 1");
}

TEST_CASE("Attribution patching is the slope of the exact patch, and integrated gradients are complete",
          "[ask][patch][gradients]") {
    for (const std::string name : {"llama", "gpt2", "hybrid-qwen3-next"}) {
        INFO(name);
        const test::AskedModel asked(name);
        ask::PatchOptions options;
        options.points = {Point::residual_before, Point::head_output, Point::value};
        store::AskRecord record = patched(asked, options);
        options.metric = difference();
        ask::ApproximateOptions approximate;
        approximate.attribution = true;
        approximate.integrated = {Point::residual_before, Point::head_output};
        const bool routed = asked.model->config().experts > 0;  // the metric jumps along the path
        approximate.steps = routed ? 2 : 64;
        approximate.correlation = true;
        NoProgress progress;
        ask::run_approximations(*asked.model, {asked.sequences()[1]}, options, approximate, record, progress,
                                Cancellation());
        CHECK(record.complete);
        // A small step along clean - corrupted at one head.
        const model::PointKey key =
            model::places_of(Point::head_output, asked.model->config(), asked.model->sites()).back();
        const auto value_at = [&](std::size_t text) {
            model::PointRecorder recorder({key});
            model::Batch batch;
            batch.ids = asked.ids(text);
            model::ForwardOptions forward;
            forward.editor = &recorder;
            asked.model->forward(batch, forward);
            return recorder.values.at(key);
        };
        Intervention step;
        step.point = Point::head_output;
        step.layers = {key.layer};
        step.heads = {1};
        step.action = Action::add;
        step.value = value_at(1) - value_at(0);
        const auto moved = [&](double factor) {
            step.factor = factor;
            return value_of(asked, asked.run(0, {step}));
        };
        const double slope = (moved(0.02) - moved(-0.02)) / 0.04;
        CHECK(std::abs(at_cell(record, "/patch/attribution/head_output", {0, key.site, 1}) - slope) <
              0.02 * std::abs(slope) + 2e-3);
        for (std::int64_t layer = 0; !routed && layer < asked.model->config().layers; ++layer)
            CHECK(std::abs(at_cell(record, "/patch/completeness/residual_before", {0, layer}) - 1) < 0.05);
        const double correlation = at_cell(record, "/patch/correlation/integrated/residual_before", {0});
        CHECK(correlation <= 1);
        CHECK(correlation >= -1);
        // A resumed file keeps what it has.
        constexpr double kept = 1e9;
        for (store::AskTable& table : record.tables)
            if (table.path == "/patch/attribution/head_output" || table.path == "/patch/completeness/head_output")
                for (double& value : table.values)
                    if (!std::isnan(value)) value = kept;
        ask::run_approximations(*asked.model, {asked.sequences()[1]}, options, approximate, record, progress,
                                Cancellation());
        CHECK(at_cell(record, "/patch/attribution/head_output", {0, key.site, 1}) == kept);
        CHECK(at_cell(record, "/patch/completeness/head_output", {0, key.site}) == kept);
    }
}

TEST_CASE("Integrated gradients of scores are complete, and hidden keys add nothing", "[ask][patch][gradients]") {
    const test::AskedModel asked("llama");
    ask::PatchOptions options;
    options.points = {Point::scores};
    store::AskRecord record = patched(asked, options);
    options.metric = difference();
    ask::ApproximateOptions approximate;
    approximate.integrated = {Point::scores};
    approximate.steps = 128;
    NoProgress progress;
    ask::run_approximations(*asked.model, {asked.sequences()[1]}, options, approximate, record, progress,
                            Cancellation());
    for (std::int64_t site = 0; site < std::ssize(record.sites); ++site)
        CHECK(std::abs(at_cell(record, "/patch/completeness/scores", {0, site}) - 1) < 0.1);
}

TEST_CASE("Approximations of points that the sweep leaves out are refused before it", "[ask][patch][gradients]") {
    const test::AskedModel asked("llama");
    ask::PatchOptions options;
    options.points = {Point::hidden};
    ask::ApproximateOptions approximate;
    approximate.integrated = {Point::hidden};
    ask::check_approximations(*asked.model, options, approximate);
    approximate.integrated = {Point::hidden, Point::value};
    CHECK_THROWS_MATCHES(ask::check_approximations(*asked.model, options, approximate), Error,
                         IsError(ErrorCode::usage, "[--integrated-sites] expected points of --sites; found value"));
}

TEST_CASE("Rank correlation averages ties and leaves out what is missing", "[ask][patch]") {
    const double nan = std::nan("");
    CHECK(near(ask::rank_correlation(std::vector<double>{1, 2, 3, nan}, std::vector<double>{10, 20, 25, 1}), 1));
    CHECK(near(ask::rank_correlation(std::vector<double>{1, 2, 3}, std::vector<double>{3, 2, 1}), -1));
    // scipy.stats.spearmanr([1, 2, 2, 4], [1, 3, 2, 4]) = 0.9486833
    CHECK(near(ask::rank_correlation(std::vector<double>{1, 2, 2, 4}, std::vector<double>{1, 3, 2, 4}), 0.9486833));
    CHECK(std::isnan(ask::rank_correlation(std::vector<double>{1}, std::vector<double>{1})));
}
