// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <ATen/TensorOperators.h>

#include "core/ask/attribution.h"
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

TEST_CASE("Terms sum to the logit difference in every family with norms before its parts", "[ask][attribution]") {
    for (const std::string name :
         {"gpt2", "llama", "gemma", "gemma2", "gemma3", "neox", "gptj", "qwen3", "olmo2", "granite", "cohere",
          "deepseek-v3", "gpt-oss", "opt", "hybrid-qwen3-next", "hybrid-falcon-h1", "hybrid-jamba", "hybrid-mamba2"}) {
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

TEST_CASE("Stacks whose residual stream is normed or scaled are refused", "[ask][attribution]") {
    const auto refused = [](const char* name, const char* part) {
        CHECK_THROWS_MATCHES(attributed(test::AskedModel(name), {{3}, {}, -1, nullptr, {}}), Error,
                             test::IsError(ErrorCode::unsupported, part));
    };
    refused("bert", "a decoder with a head");
    refused("opt-small-embedding-post-norm", "norms on the residual stream");
    refused("hybrid-minimax", "norms on the residual stream");
    CHECK_THROWS_MATCHES(attributed(test::AskedModel("llama"), {}), Error, test::IsError(ErrorCode::usage, "--answer"));
}
