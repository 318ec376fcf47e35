// SPDX-License-Identifier: GPL-3.0-or-later
// Patched values of models with an encoder and a decoder against interventions in single runs.
#include "tests/catch_with_torch.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>

#include "core/ask/approximate.h"
#include "core/ask/patch.h"
#include "core/model/config.h"
#include "core/model/model.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/ask/encoder_decoder_edits.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using model::Action;
using model::Intervention;
using model::Point;
using model::PointKey;
using test::answer_of;
using test::at_cell;
using test::at_site;
using test::in_layer;
using test::IsError;
using test::kEncoderDecoders;
using test::near;
using test::recorded;
using test::with_equal_lengths;

namespace {

/// That of answer_of().
ask::Metric answer_metric() {
    ask::Metric metric;
    metric.kind = ask::MetricKind::logit_difference;
    metric.answer = {3};
    metric.against = {5};
    metric.position = 2;
    return metric;
}

/// Text 0 patched with values of text 1.
store::AskRecord patched_pair(const test::AskedModel& asked, ask::PatchOptions options,
                              const ask::ApproximateOptions* approximate = nullptr) {
    store::AskRecord record = asked.record("patch");
    record.sequences.resize(1);
    record.dimensions.clear();
    store::add_usual_dimensions(record);
    options.metric = answer_metric();
    NoProgress progress;
    const std::vector<store::SequenceTokens> clean{asked.sequences()[1]};
    ask::run_patch(*asked.model, clean, options, record, progress, Cancellation());
    if (approximate)
        ask::run_approximations(*asked.model, clean, options, *approximate, record, progress, Cancellation());
    return record;
}

}  // namespace

TEST_CASE("Patched layers of encoder and decoder count their own positions", "[ask][encoder-decoder]") {
    for (const std::string& name : kEncoderDecoders) {
        INFO(name);
        const test::AskedModel asked = with_equal_lengths(name);
        const auto source = std::ssize(asked.texts[0]), target = std::ssize(asked.targets[0]);
        REQUIRE(target < source);
        ask::PatchOptions options;
        options.points = {Point::hidden, Point::attention_output};
        const store::AskRecord record = patched_pair(asked, options);
        const std::int64_t encoder = asked.model->config().encoder->layers;
        CHECK(near(at_cell(record, "/patch/corrupted", {0}), answer_of(asked, {})));
        Intervention edit = in_layer(Point::hidden, 0, Action::run);
        edit.values = recorded(asked, 1, Point::hidden);
        for (std::int64_t layer = 0; layer < std::ssize(record.mixers); ++layer) {
            const bool reads_source = layer < encoder;
            edit.layers = {layer};
            for (std::int64_t p = 0; p < source; ++p) {
                INFO("layer " << layer << ", position " << p);
                const double cell = at_cell(record, "/patch/value/hidden", {0, layer, p});
                edit.positions = {{p, p}};
                if (reads_source || p < target)
                    CHECK(near(cell, answer_of(asked, {edit})));
                else
                    CHECK(std::isnan(cell));
            }
        }
        for (std::int64_t site = 0; site < std::ssize(record.sites); ++site) {
            INFO("site " << site);
            Intervention one = at_site(asked, Point::attention_output, site, Action::run);
            one.values = recorded(asked, 1, Point::attention_output);
            one.positions = {{1, 1}};
            CHECK(near(at_cell(record, "/patch/value/attention_output", {0, site, 1}), answer_of(asked, {one})));
        }
    }
}

TEST_CASE("Patched heads of encoder, decoder and cross-attention are interventions", "[ask][encoder-decoder]") {
    const test::AskedModel asked = with_equal_lengths("t5");
    const auto source = std::ssize(asked.texts[0]), target = std::ssize(asked.targets[0]);
    ask::PatchOptions options;
    options.points = {Point::query, Point::key, Point::value, Point::pattern, Point::head_output};
    const store::AskRecord whole = patched_pair(asked, options);
    options.by = ask::SweepBy::both;
    const store::AskRecord both = patched_pair(asked, options);
    for (const Point point : options.points) {
        const std::string path = "/patch/value/" + std::string(model::name(point));
        const auto values = recorded(asked, 1, point);
        for (std::int64_t site = 0; site < std::ssize(whole.sites); ++site) {
            INFO(path << ", site " << site);
            const Site& own = whole.sites[static_cast<std::size_t>(site)];
            Intervention edit = at_site(asked, point, site, Action::run);
            edit.values = values;
            edit.heads = {1};
            CHECK(near(at_cell(whole, path, {0, site, 1}), answer_of(asked, {edit})));
            edit.positions = {{2, 2}};
            CHECK(near(at_cell(both, path, {0, site, 1, 2}), answer_of(asked, {edit})));
            // The last source token is no position of the decoder's own rows.
            const bool of_keys = point == Point::key || point == Point::value;
            const bool counts_source = own.stack == "encoder" || (own.is_cross() && of_keys);
            CHECK(std::isnan(at_cell(both, path, {0, site, 1, source - 1})) == !counts_source);
            CHECK_FALSE(std::isnan(at_cell(both, path, {0, site, 1, target - 1})));
        }
    }
    options.points = {Point::pattern};
    options.by = ask::SweepBy::cell;
    const store::AskRecord cells = patched_pair(asked, options);
    const std::int64_t cross = std::ssize(cells.sites) - 1;
    REQUIRE(cells.sites.back().is_cross());
    CHECK_FALSE(std::isnan(at_cell(cells, "/patch/value/pattern", {0, cross, 0, target - 1, source - 1})));
    CHECK(std::isnan(at_cell(cells, "/patch/value/pattern", {0, cross, 0, target, 0})));
    CHECK(std::isnan(at_cell(cells, "/patch/value/pattern", {0, cross - 1, 0, target - 1, target})));
}

TEST_CASE("Edges align sources and targets apart", "[ask][encoder-decoder]") {
    const test::AskedModel asked("t5");
    store::SequenceTokens clean = asked.sequences()[0], corrupted = clean;
    clean.ids = {4, 5, 6, 7, 8};
    corrupted.ids = {4, 9, 7, 8};
    auto reads = std::make_shared<store::SequenceTokens>(), other = std::make_shared<store::SequenceTokens>();
    reads->ids = {0, 3, 2};
    other->ids = {0, 6, 6, 2};
    clean.target = reads;
    corrupted.target = other;
    const ask::AlignedTexts texts = ask::aligned_texts(clean, corrupted, ask::Alignment::edges, 0);
    CHECK(texts.own == std::vector<std::int64_t>{0, -1, 3, 4});
    CHECK(texts.target == std::vector<std::int64_t>{0, -1, -1, 2});
    corrupted.ids = clean.ids;
    CHECK_THROWS_MATCHES(ask::aligned_texts(clean, corrupted, ask::Alignment::equal, 0), Error,
                         IsError(ErrorCode::usage, "targets of pair 0"));
}

TEST_CASE("Attribution patching of an encoder is the metric's slope", "[ask][encoder-decoder][gradients]") {
    const test::AskedModel asked = with_equal_lengths("umt5");  // smooth: no step hides in a kink
    ask::PatchOptions options;
    options.points = {Point::hidden, Point::final_norm};
    ask::ApproximateOptions approximate;
    approximate.attribution = true;
    const store::AskRecord record = patched_pair(asked, options, &approximate);
    // The metric is linear in the decoder's final hidden states.
    for (std::int64_t p = 0; p < std::ssize(asked.targets[0]); ++p)
        CHECK(near(at_cell(record, "/patch/attribution/final_norm", {0, 0, p}),
                   at_cell(record, "/patch/value/final_norm", {0, 0, p}) - at_cell(record, "/patch/corrupted", {0})));
    const auto clean = recorded(asked, 1, Point::hidden), corrupted = recorded(asked, 0, Point::hidden);
    for (std::int64_t layer = 0; layer < std::ssize(record.mixers); ++layer) {
        INFO("layer " << layer);
        const PointKey place{Point::hidden, layer, -1};
        Intervention moved = in_layer(Point::hidden, layer, Action::add);
        moved.value = (clean.at(place) - corrupted.at(place))[0];
        const auto value = [&](double factor) {
            moved.factor = factor;
            return answer_of(asked, {moved});
        };
        const double slope = (value(0.01) - value(-0.01)) / 0.02;
        double sum = 0;
        for (std::int64_t p = 0; p < moved.value.size(0); ++p)
            sum += at_cell(record, "/patch/attribution/hidden", {0, layer, p});
        CHECK(std::abs(sum - slope) < 0.03 * std::abs(slope) + 2e-3);
    }
}
