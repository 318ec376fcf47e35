// SPDX-License-Identifier: GPL-3.0-or-later
// Tools of ask on T5 and BART against interventions in single runs of a source and what the decoder reads.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>

#include "core/ask/ablate.h"
#include "core/ask/approximate.h"
#include "core/ask/attribution.h"
#include "core/ask/edits/intervention_file.h"
#include "core/ask/knockout.h"
#include "core/ask/lens.h"
#include "core/ask/parts.h"
#include "core/ask/patch.h"
#include "core/ask/steer.h"
#include "core/model/config.h"
#include "core/model/model.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/head_edit.h"

using namespace headscope;
using ask::AblateBy;
using model::Action;
using model::Intervention;
using model::Point;
using model::PointKey;
using test::at_cell;
using test::IsError;
using test::near;

namespace {

const std::vector<std::string> kEncoderDecoders{"t5", "bart", "umt5"};

/// Two sources of one length, and two targets of another.
test::AskedModel with_equal_lengths(const std::string& name) {
    test::AskedModel asked(name);
    for (auto* rows : {&asked.texts, &asked.targets}) {
        const std::size_t shorter = std::min(rows->at(0).size(), rows->at(1).size());
        for (auto& row : *rows) row.resize(shorter);
    }
    return asked;
}

/// An edit of one attention.
Intervention at_site(const test::AskedModel& asked, Point point, std::int64_t site, Action action) {
    Intervention edit = test::head_edit(asked.model->sites(), site, 0, action);
    edit.point = point;
    edit.heads.clear();
    return edit;
}

Intervention in_layer(Point point, std::int64_t layer, Action action) {
    Intervention edit;
    edit.point = point;
    edit.layers = {layer};
    edit.action = action;
    return edit;
}

/// Values of places in the unedited run of a text, each [1, ..].
std::map<PointKey, at::Tensor> recorded(const test::AskedModel& asked, std::size_t text, Point point) {
    const auto places = model::places_of(point, asked.model->config(), asked.model->sites());
    model::PointRecorder recorder(std::set<PointKey>(places.begin(), places.end()));
    model::ForwardOptions options;
    options.editor = &recorder;
    asked.model->forward(asked.batch(text), options);
    return recorder.values;
}

ask::Metric answer_metric() {
    ask::Metric metric;
    metric.kind = ask::MetricKind::logit_difference;
    metric.answer = {3};
    metric.against = {5};
    metric.position = 2;
    return metric;
}

/// That metric of text 0 with an edit.
double answer_of(const test::AskedModel& asked, std::vector<Intervention> edits) {
    const at::Tensor logits = asked.model->logits(asked.run(0, std::move(edits)).narrow(0, 2, 1)).to(at::kDouble);
    return (logits[0][3] - logits[0][5]).item<double>();
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

store::AskRecord ablated_texts(const test::AskedModel& asked, AblateBy how,
                               std::vector<store::SequenceTokens> reference = {}) {
    store::AskRecord record = asked.record("ablate");
    ask::AblateOptions options;
    options.how = how;
    options.reference = std::move(reference);
    NoProgress progress;
    ask::run_ablate(*asked.model, options, record, progress, Cancellation());
    return record;
}

}  // namespace

TEST_CASE("Ablated losses of encoder-decoders are those of the same interventions", "[ask][encoder-decoder]") {
    for (const std::string& name : kEncoderDecoders) {
        INFO(name);
        const test::AskedModel asked(name);
        for (const auto& [how, action] :
             {std::pair(AblateBy::zero, Action::zero), std::pair(AblateBy::mean, Action::mean)}) {
            const store::AskRecord record = ablated_texts(asked, how);
            CHECK(record.complete);
            for (std::int64_t s = 0; s < 2; ++s) {
                const auto text = static_cast<std::size_t>(s);
                CHECK(near(at_cell(record, "/ablate/baseline", {s}), asked.loss(text)));
                for (std::int64_t site = 0; site < std::ssize(record.sites); ++site) {
                    INFO("site " << site);
                    CHECK(near(at_cell(record, "/ablate/head", {s, site, 1}),
                               asked.loss(text, {test::head_edit(record.sites, site, 1, action)})));
                    CHECK(near(at_cell(record, "/ablate/attention", {s, site}),
                               asked.loss(text, {at_site(asked, Point::attention_output, site, action)})));
                }
                for (std::int64_t layer = 0; layer < std::ssize(record.mixers); ++layer)
                    CHECK(near(at_cell(record, "/ablate/feed_forward", {s, layer}),
                               asked.loss(text, {in_layer(Point::feed_forward_output, layer, action)})));
            }
        }
    }
}

TEST_CASE("Reference means count the tokens of each place, source or target", "[ask][encoder-decoder]") {
    const test::AskedModel asked("t5");
    const store::AskRecord record = ablated_texts(asked, AblateBy::reference, asked.sequences());
    const auto first = recorded(asked, 0, Point::head_output), second = recorded(asked, 1, Point::head_output);
    for (const auto& [place, value] : first) {
        INFO("site " << place.site);
        const at::Tensor& other = second.at(place);
        Intervention edit = test::head_edit(record.sites, place.site, 2, Action::set);
        edit.value = (value[0].sum(1) + other[0].sum(1)) / static_cast<double>(value.size(2) + other.size(2));
        CHECK(near(at_cell(record, "/ablate/head", {0, place.site, 2}), asked.loss(0, {edit})));
    }
}

TEST_CASE("Resampled outputs are those of the other source and target", "[ask][encoder-decoder]") {
    const test::AskedModel asked = with_equal_lengths("t5");
    const store::AskRecord record = ablated_texts(asked, AblateBy::resample, {asked.sequences()[1]});
    for (const auto& [place, value] : recorded(asked, 1, Point::head_output)) {
        INFO("site " << place.site);
        Intervention edit = test::head_edit(record.sites, place.site, 0, Action::set);
        edit.value = value;
        CHECK(near(at_cell(record, "/ablate/head", {0, place.site, 0}), asked.loss(0, {edit})));
    }
    std::vector<store::SequenceTokens> reference{asked.sequences()[1]};
    auto longer = std::make_shared<store::SequenceTokens>(*reference[0].target);
    longer->ids.push_back(2);
    reference[0].target = longer;
    CHECK_THROWS_MATCHES(ablated_texts(asked, AblateBy::resample, reference), Error,
                         IsError(ErrorCode::usage, "expected target 0 to have "));
}

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

TEST_CASE("Edges are knocked out in the chosen attentions of an encoder-decoder", "[ask][encoder-decoder]") {
    using ask::KnockoutIn;
    const test::AskedModel asked("umt5");
    const std::int64_t encoder = asked.model->config().encoder->layers, layers = asked.model->config().all_layers();
    Intervention forbidden;
    forbidden.point = Point::scores;
    forbidden.action = Action::forbid;
    forbidden.queries = {{1, -1}};
    forbidden.keys = {{0, 2}};
    std::vector<std::int64_t> sources, targets;
    for (std::int64_t layer = 0; layer < layers; ++layer) (layer < encoder ? sources : targets).push_back(layer);
    for (const KnockoutIn in : {KnockoutIn::all, KnockoutIn::encoder, KnockoutIn::decoder, KnockoutIn::cross}) {
        INFO("choice " << static_cast<int>(in));
        ask::KnockoutOptions options;
        options.queries = forbidden.queries;
        options.keys = forbidden.keys;
        options.attention = in;
        options.window = 2;
        store::AskRecord record = asked.record("knockout");
        NoProgress progress;
        ask::run_knockout(*asked.model, options, record, progress, Cancellation());
        Intervention edit = forbidden;
        if (in == KnockoutIn::encoder) edit.layers = sources;
        if (in == KnockoutIn::decoder || in == KnockoutIn::cross) {
            edit.layers = targets;
            edit.attention = in == KnockoutIn::cross ? "cross" : "self";
        }
        for (std::int64_t s = 0; s < 2; ++s) {
            const auto text = static_cast<std::size_t>(s);
            const double baseline = at_cell(record, "/knockout/baseline", {s});
            CHECK(near(baseline, asked.loss(text)));
            CHECK(near(at_cell(record, "/knockout/value", {s}), asked.loss(text, {edit})));
            CHECK(at_cell(record, "/knockout/value", {s}) != baseline);
            // Windows of two layers: the one before, of the same side, and the layer itself.
            for (std::int64_t layer = 0; layer < layers; ++layer) {
                INFO("layer " << layer);
                const bool reads_source = layer < encoder;
                const double cell = at_cell(record, "/knockout/by_layer", {s, layer});
                if (in != KnockoutIn::all && reads_source != (in == KnockoutIn::encoder)) {
                    CHECK(std::isnan(cell));
                    continue;
                }
                Intervention window = edit;
                window.layers = {layer};
                if (layer != 0 && layer != encoder) window.layers = {layer - 1, layer};
                CHECK(near(cell, asked.loss(text, {window})));
            }
        }
    }
    const test::AskedModel other("llama");
    ask::KnockoutOptions options;
    options.queries = forbidden.queries;
    options.keys = forbidden.keys;
    options.attention = KnockoutIn::cross;
    store::AskRecord record = other.record("knockout");
    NoProgress progress;
    CHECK_THROWS_MATCHES(ask::run_knockout(*other.model, options, record, progress, Cancellation()), Error,
                         IsError(ErrorCode::usage, "--attention"));
}

TEST_CASE("Steering vectors are of the source's last token in the encoder, of the target's in the decoder",
          "[ask][encoder-decoder]") {
    const test::AskedModel asked("t5");
    ask::SteerOptions options;
    options.positive = {asked.sequences()[0]};
    options.negative = {asked.sequences()[1]};
    options.factors = {-1, 2};
    store::AskRecord record = asked.record("steer");
    NoProgress progress;
    ask::run_steer(*asked.model, options, record, progress, Cancellation());
    const auto first = recorded(asked, 0, Point::hidden), second = recorded(asked, 1, Point::hidden);
    REQUIRE(first.size() == static_cast<std::size_t>(asked.model->config().all_layers()));
    for (const auto& [place, value] : first) {
        INFO("layer " << place.layer);
        const at::Tensor& other = second.at(place);
        const at::Tensor vector = value[0][value.size(1) - 1] - other[0][other.size(1) - 1];
        CHECK(near(at_cell(record, "/steer/vector", {place.layer, 3}), vector[3].item<double>()));
        Intervention edit = in_layer(Point::hidden, place.layer, Action::add);
        edit.value = vector;
        edit.factor = 2;
        CHECK(near(at_cell(record, "/steer/value", {0, place.layer, 1}), asked.loss(0, {edit})));
    }
}

TEST_CASE("The lens of an encoder-decoder reads its decoder's boundaries", "[ask][encoder-decoder][lens]") {
    for (const std::string& name : kEncoderDecoders) {
        INFO(name);
        const test::AskedModel asked(name);
        store::AskRecord record = asked.record("lens");
        NoProgress progress;
        ask::run_lens(*asked.model, {}, record, progress, Cancellation());
        CHECK(record.complete);
        const model::ModelConfig& config = asked.model->config();
        const auto before = recorded(asked, 0, Point::residual_before), after = recorded(asked, 0, Point::hidden);
        const at::Tensor output = asked.run(0);
        const std::vector<std::int64_t>& tokens = asked.targets[0];
        CHECK(record.size_of("/boundary") == config.layers + 1);
        for (std::int64_t b = 0; b <= config.layers; ++b) {
            const std::int64_t layer = config.encoder->layers + b;
            const at::Tensor stream = b < config.layers ? before.at({Point::residual_before, layer, -1})
                                                        : after.at({Point::hidden, layer - 1, -1});
            const at::Tensor logits = asked.model->logits(ask::final_norm(*asked.model, stream[0])).to(at::kDouble);
            const at::Tensor logs = at::log_softmax(logits, 1);
            for (std::int64_t p = 0; p + 1 < std::ssize(tokens); ++p)
                CHECK(near(at_cell(record, "/lens/log_probability", {0, b, p}),
                           logs[p][tokens[static_cast<std::size_t>(p + 1)]].item<double>()));
        }
        const at::Tensor logs = at::log_softmax(asked.model->logits(output).to(at::kDouble), 1);
        CHECK(near(at_cell(record, "/lens/log_probability", {0, config.layers, 1}), logs[1][tokens[2]].item<double>()));
        CHECK(std::isnan(at_cell(record, "/lens/entropy", {0, 0, std::ssize(tokens)})));
    }
}

TEST_CASE("Terms of a decoder with cross-attention sum to the logit", "[ask][encoder-decoder][attribution]") {
    for (const std::string name : {"t5", "umt5", "bart", "mbart", "pegasus", "marian"}) {
        INFO(name);
        const test::AskedModel asked(name);
        const std::int64_t encoder = asked.model->config().encoder->layers;
        store::AskRecord record = asked.record("attribution");
        NoProgress progress;
        ask::run_attribution(*asked.model, {{3}, {5}, 2, nullptr, {}}, record, progress, Cancellation());
        CHECK(record.complete);
        const double logit = at_cell(record, "/attribution/logit", {0});
        CHECK(near(logit, answer_of(asked, {})));
        CHECK(near(at_cell(record, "/attribution/total", {0}), logit));
        for (std::int64_t layer = 0; layer < std::ssize(record.mixers); ++layer) {
            INFO("layer " << layer);
            const double attention = at_cell(record, "/attribution/attention", {0, layer});
            CHECK(std::isnan(attention) == (layer < encoder));
            if (layer < encoder) continue;
            double sum = at_cell(record, "/attribution/attention_bias", {0, layer});
            for (std::int64_t site = 0; site < std::ssize(record.sites); ++site) {
                const Site& own = record.sites[static_cast<std::size_t>(site)];
                for (std::int64_t h = 0; own.layer == layer && h < own.heads; ++h)
                    sum += at_cell(record, "/attribution/head", {0, site, h});
            }
            CHECK(near(sum, attention));
        }
    }
}

TEST_CASE("A cross-attention head's term is its share of the final state, through the frozen norm and the head",
          "[ask][encoder-decoder][attribution]") {
    const test::AskedModel asked("t5");
    store::AskRecord record = asked.record("attribution");
    NoProgress progress;
    ask::run_attribution(*asked.model, {{3}, {5}, 2, nullptr, {}}, record, progress, Cancellation());
    const std::int64_t cross = std::ssize(record.sites) - 1, layer = record.sites.back().layer;
    const PointKey place{Point::attention_output, layer, cross};
    const at::Tensor stream = recorded(asked, 0, Point::hidden).at({Point::hidden, layer, -1})[0].narrow(0, 2, 1);
    const at::Tensor gain = ask::final_norm(*asked.model, stream) / stream;
    const at::Tensor whole = recorded(asked, 0, Point::attention_output).at(place)[0].narrow(0, 2, 1);
    for (std::int64_t h = 0; h < record.sites.back().heads; ++h) {
        INFO("head " << h);
        model::Interventions without({test::head_edit(record.sites, cross, h)}, asked.model->config(), record.sites);
        model::PointRecorder recorder(std::set<PointKey>{place});
        model::EditorChain both({&without, &recorder});
        model::ForwardOptions options;
        options.editor = &both;
        asked.model->forward(asked.batch(0), options);
        const at::Tensor share = whole - recorder.values.at(place)[0].narrow(0, 2, 1);
        const at::Tensor logits = asked.model->logits(share * gain).to(at::kDouble)[0];
        CHECK(near(at_cell(record, "/attribution/head", {0, cross, h}), (logits[3] - logits[5]).item<double>()));
    }
}

TEST_CASE("Texts of an intervention file have what the decoder reads", "[ask][encoder-decoder]") {
    const test::AskedModel asked("t5");
    const auto plan_of = [](const test::AskedModel& model, const std::string& target) {
        return ask::parse_interventions(R"(
[[intervention]]
point = "head_output"
layer = 2
attention = "cross"
what = "run"
text = "other"
[[intervention]]
point = "hidden"
layer = 0
what = "reference"
text = ["other"]
[[text]]
name = "other"
tokens = [3, 4, 5]
)" + target,
                                        "plan.toml", ".", {model.model->config(), model.model->sites()});
    };
    ask::InterventionPlan plan = plan_of(asked, "target = [7, 8]");
    plan.read_values(*asked.model, nullptr);
    test::AskedModel other("t5");
    other.texts = {{3, 4, 5}};
    other.targets = {{0, 7, 8}};
    const PointKey cross{Point::head_output, 2, 3}, hidden{Point::hidden, 0, -1};
    const at::Tensor heads = recorded(other, 0, Point::head_output).at(cross);
    CHECK((plan.list.at(0).values.at(cross) - heads).abs().max().item<double>() < 1e-6);
    const at::Tensor mean = recorded(other, 0, Point::hidden).at(hidden)[0].to(at::kDouble).mean(0);
    CHECK((plan.list.at(1).values.at(hidden) - mean).abs().max().item<double>() < 1e-9);
    CHECK(plan_of(asked, "").texts.at(0).target == std::vector<std::int64_t>{0});
    CHECK_THROWS_MATCHES(plan_of(test::AskedModel("llama"), "target = [7, 8]"), Error,
                         IsError(ErrorCode::usage, "no target for a model of one stack"));
}

TEST_CASE("A decoder's input of one token has no loss", "[ask][encoder-decoder]") {
    test::AskedModel asked("t5");
    asked.targets[1].resize(1);
    CHECK_THROWS_MATCHES(ablated_texts(asked, AblateBy::zero), Error,
                         IsError(ErrorCode::usage, "at least 2 tokens for loss; found 1 in text 1"));
}

TEST_CASE("Ask files keep the decoder's input", "[ask][encoder-decoder]") {
    const test::TemporaryFolder folder;
    const test::AskedModel asked("t5");
    store::AskRecord record = ablated_texts(asked, AblateBy::zero);
    CHECK(record.size_of("/token") == 17);
    store::write_ask(folder / "a.ask.h5", record);
    const store::AskRecord read = store::read_ask(folder / "a.ask.h5");
    REQUIRE(read.sequences.size() == 2);
    for (std::size_t s = 0; s < 2; ++s) {
        REQUIRE(read.sequences[s].target != nullptr);
        CHECK(read.sequences[s].ids == record.sequences[s].ids);
        CHECK(read.sequences[s].target->ids == record.sequences[s].target->ids);
        CHECK(read.sequences[s].target->pieces == record.sequences[s].target->pieces);
    }
    for (store::SequenceTokens& text : record.sequences) text.target = nullptr;
    store::write_ask(folder / "b.ask.h5", record);
    CHECK(store::read_ask(folder / "b.ask.h5").sequences[0].target == nullptr);
}
