// SPDX-License-Identifier: GPL-3.0-or-later
// ask lens and attribution of models with an encoder and a decoder: boundaries and terms of the decoder.
#include "tests/catch_with_torch.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>

#include "core/ask/attribution.h"
#include "core/ask/lens.h"
#include "core/ask/parts.h"
#include "core/model/config.h"
#include "core/model/model.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/ask/encoder_decoder_edits.h"
#include "tests/core/model/head_edit.h"

using namespace headscope;
using model::Point;
using model::PointKey;
using test::answer_of;
using test::at_cell;
using test::kEncoderDecoders;
using test::near;
using test::recorded;

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
