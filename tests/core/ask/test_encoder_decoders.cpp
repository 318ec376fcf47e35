// SPDX-License-Identifier: GPL-3.0-or-later
// Tools of ask on T5 and BART against interventions in single runs of a source and what the decoder reads.
#include "tests/catch_with_torch.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>

#include "core/ask/ablate.h"
#include "core/ask/edits/intervention_file.h"
#include "core/ask/knockout.h"
#include "core/ask/steer.h"
#include "core/model/config.h"
#include "core/model/model.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/ask/encoder_decoder_edits.h"
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
using test::at_site;
using test::in_layer;
using test::IsError;
using test::kEncoderDecoders;
using test::near;
using test::recorded;
using test::with_equal_lengths;

namespace {

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
