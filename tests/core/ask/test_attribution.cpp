// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>

#include "core/ask/attribution.h"
#include "core/ask/parts.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using test::at_cell;
using test::near;

namespace {

store::AskRecord attributed(const test::AskedModel& asked, const ask::AttributionOptions& options) {
    store::AskRecord record = asked.record("attribution");
    NoProgress progress;
    ask::run_attribution(*asked.model, options, record, progress, Cancellation());
    return record;
}

}  // namespace

TEST_CASE("Terms sum to the logit difference in families of every kind of block", "[ask][attribution]") {
    for (const std::string name : {"gpt2",
                                   "llama",
                                   "gemma",
                                   "gemma2",
                                   "gemma3",
                                   "neox",
                                   "gptj",
                                   "qwen3",
                                   "olmo2",
                                   "granite",
                                   "cohere",
                                   "deepseek-v3",
                                   "gpt-oss",
                                   "opt",
                                   "opt-small-embedding-post-norm",
                                   "hybrid-qwen3-next",
                                   "hybrid-falcon-h1",
                                   "hybrid-jamba",
                                   "hybrid-mamba2",
                                   "hybrid-minimax"}) {
        INFO(name);
        const test::AskedModel asked(name);
        const store::AskRecord record = attributed(asked, {{3}, {5, 7}, -2, nullptr, {}});
        for (std::int64_t s = 0; s < std::ssize(record.sequences); ++s) {
            const double total = at_cell(record, "/attribution/total", {s});
            const double logit = at_cell(record, "/attribution/logit", {s});
            CHECK(std::abs(total - logit) < 1e-4 * std::max(1.0, std::abs(logit)));
        }
        if (asked.model->config().final_soft_cap == 0) {
            const at::Tensor hidden = asked.run(0);
            const at::Tensor logits = asked.model->logits(hidden.narrow(0, hidden.size(0) - 2, 1)).to(at::kDouble)[0];
            CHECK(near(at_cell(record, "/attribution/logit", {0}),
                       (logits[3] - (logits[5] + logits[7]) / 2).item<double>()));
        }
    }
}

TEST_CASE("A head's term is what its output adds when everything else is frozen", "[ask][attribution]") {
    const test::AskedModel asked("llama");
    const store::AskRecord record = attributed(asked, {{3}, {}, -1, nullptr, {}});
    double heads = 0;
    for (std::int64_t h = 0; h < record.sites[1].heads; ++h) heads += at_cell(record, "/attribution/head", {0, 1, h});
    CHECK(near(heads + at_cell(record, "/attribution/attention_bias", {0, 1}),
               at_cell(record, "/attribution/attention", {0, 1})));
    CHECK(at_cell(record, "/attribution/position_embedding", {0}) == 0);
    const test::AskedModel learned("gpt2");
    CHECK(at_cell(attributed(learned, {{3}, {}, -1, nullptr, {}}), "/attribution/position_embedding", {0}) != 0);
}

TEST_CASE("A feed-forward's term is the sum over its experts and the shared one", "[ask][attribution]") {
    for (const std::string name : {"deepseek-v3", "gpt-oss", "hybrid-qwen3-next", "hybrid-minimax"}) {
        INFO(name);
        const test::AskedModel asked(name);
        const store::AskRecord record = attributed(asked, {{3}, {}, -1, nullptr, {}});
        const model::ModelConfig& config = asked.model->config();
        std::int64_t routed = 0;
        for (std::int64_t layer = 0; layer < config.layers; ++layer) {
            double sum = at_cell(record, "/attribution/shared_expert", {0, layer});
            if (!config.has_experts(layer)) {
                CHECK(std::isnan(sum));
                continue;
            }
            std::int64_t chosen = 0;
            for (std::int64_t e = 0; e < config.experts; ++e) {
                const double term = at_cell(record, "/attribution/expert", {0, layer, e});
                if (term != 0) ++chosen;
                sum += term;
            }
            CHECK(chosen == config.experts_per_token);
            CHECK(near(sum, at_cell(record, "/attribution/feed_forward", {0, layer})));
            ++routed;
        }
        CHECK(routed > 0);
        // A file that is continued gives its tables alone.
        store::AskRecord resumed = asked.record("attribution");
        resumed.tables = record.tables;
        for (store::AskTable& table : resumed.tables)
            if (table.path == "/attribution/logit") std::fill(table.values.begin(), table.values.end(), std::nan(""));
        NoProgress progress;
        ask::run_attribution(*asked.model, {{3}, {}, -1, nullptr, {}}, resumed, progress, Cancellation());
        CHECK(resumed.complete);
        CHECK(at_cell(resumed, "/attribution/total", {1}) == at_cell(record, "/attribution/total", {1}));
    }
}

TEST_CASE("A head's part of the value bias is that bias through the frozen stack", "[ask][attribution]") {
    const test::AskedModel asked("gpt2");
    const store::AskRecord record = attributed(asked, {{3}, {}, -1, nullptr, {}});
    const std::int64_t layer = asked.model->config().layers - 1, heads = record.sites.back().heads;
    const model::Stack& stack = ask::stack_of(*asked.model);
    const model::Layer& block = *stack.tower().layers().back();
    const auto maps = block.mixer->head_maps();
    REQUIRE(maps);
    REQUIRE(maps->value_bias.defined());
    model::PointRecorder recorder({{model::Point::hidden, layer, -1}});
    model::Batch batch;
    batch.ids = asked.ids(0);
    model::ForwardOptions options;
    options.editor = &recorder;
    asked.model->forward(batch, options);
    const at::Tensor x = recorder.values.begin()->second[0][-1].to(at::kDouble);
    const model::Norm& norm = stack.tower().final_norm();
    const at::Tensor gained = stack.head().vocabulary.weight[3].to(at::kDouble) * norm.weight.to(at::kDouble);
    const at::Tensor form =
        (gained - gained.mean()) / ((x - x.mean()).square().mean() + norm.epsilon).sqrt();  // of the residual stream
    const at::Tensor back = at::matmul(form, block.output.weight.to(at::kDouble)).view({heads, -1});
    const at::Tensor bias = maps->value_bias.to(at::kDouble) +
                            at::matmul(block.input_norm.bias.to(at::kDouble), maps->value.to(at::kDouble));
    for (std::int64_t h = 0; h < heads; ++h) {
        const double part = back[h].dot(bias[h]).item<double>();  // the weights of a row sum to 1
        CHECK(part != 0);
        CHECK(near(at_cell(record, "/attribution/head_value_bias", {0, layer, h}), part));
    }
}

TEST_CASE("Terms sum to the logit with edits of parts, and edits of the stream are refused", "[ask][attribution]") {
    const test::AskedModel asked("llama");
    const auto with = [&](model::Point point) {
        model::Intervention one;
        one.point = point;
        model::Interventions edits({one}, asked.model->config(), asked.model->sites());
        return attributed(asked, {{3}, {}, -1, &edits, {}});
    };
    for (const model::Point point : {model::Point::value, model::Point::head_output, model::Point::mixer_output,
                                     model::Point::feed_forward_output}) {
        const store::AskRecord record = with(point);
        const double total = at_cell(record, "/attribution/total", {0});
        CHECK(near(total, at_cell(record, "/attribution/logit", {0})));
    }
    for (const model::Point point : {model::Point::residual_before, model::Point::attention_output,
                                     model::Point::residual_middle, model::Point::hidden, model::Point::final_norm})
        CHECK_THROWS_MATCHES(with(point), Error,
                             test::IsError(ErrorCode::unsupported, "found one at " + std::string(model::name(point))));
}

TEST_CASE("Models without a linear head of a decoder are refused", "[ask][attribution]") {
    const auto refused = [](const char* name, const char* part) {
        CHECK_THROWS_MATCHES(attributed(test::AskedModel(name), {{3}, {}, -1, nullptr, {}}), Error,
                             test::IsError(ErrorCode::unsupported, part));
    };
    refused("bert", "a decoder with a head");
    CHECK_THROWS_MATCHES(attributed(test::AskedModel("llama"), {}), Error, test::IsError(ErrorCode::usage, "--answer"));
}
