// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>

#include "core/ask/generation.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using test::at_cell;
using test::near;

namespace {

store::AskRecord generated(const test::AskedModel& asked, const ask::GenerationOptions& options) {
    store::AskRecord record = asked.record("generate");
    NoProgress progress;
    ask::run_generation(*asked.model, options, record, progress, Cancellation());
    return record;
}

}  // namespace

TEST_CASE("Each step's distribution and rows are those of a pass over the whole text", "[ask][generate]") {
    for (const std::string name : {"llama", "gpt2", "gemma2", "hybrid-qwen3-next"}) {
        INFO(name);
        test::AskedModel asked(name);
        for (auto& text : asked.texts) text.resize(std::min<std::size_t>(text.size(), 5));
        ask::GenerationOptions options;
        options.tokens = 3;
        options.top = 4;
        options.maps = true;
        const store::AskRecord record = generated(asked, options);
        CHECK(record.complete);
        std::vector<std::int64_t> text = asked.texts[0];
        const std::int64_t prompt = std::ssize(text);
        for (std::int64_t t = 0; t < 3; ++t)
            text.push_back(static_cast<std::int64_t>(at_cell(record, "/generate/token", {0, t})));
        text.pop_back();  // the last token is not read
        const auto places = model::places_of(model::Point::pattern, asked.model->config(), asked.model->sites());
        model::PointRecorder recorder(std::set<model::PointKey>(places.begin(), places.end()));
        model::Batch batch;
        batch.ids = at::tensor(text, at::kLong).unsqueeze(0);
        model::ForwardOptions forward;
        forward.editor = &recorder;
        const at::Tensor logs =
            at::log_softmax(asked.model->logits(asked.model->forward(batch, forward)[0]).to(at::kDouble), 1);
        for (std::int64_t t = 0; t < 3; ++t) {
            const at::Tensor row = logs[prompt - 1 + t];
            const auto token = static_cast<std::int64_t>(at_cell(record, "/generate/token", {0, t}));
            CHECK(near(at_cell(record, "/generate/log_probability", {0, t}), row[token].item<double>()));
            CHECK(near(row.max().item<double>(), row[token].item<double>()));
            CHECK(near(at_cell(record, "/generate/top_probability", {0, t, 0}), row.max().exp().item<double>()));
            for (const auto& [key, pattern] : recorder.values) {
                const at::Tensor weights = pattern[0].select(1, prompt - 1 + t).to(at::kDouble);
                for (std::int64_t h = 0; h < weights.size(0); ++h) {
                    double entropy = 0, distance = 0;
                    for (std::int64_t j = 0; j < prompt + t; ++j) {
                        const double a = weights[h][j].item<double>();
                        if (a > 0) entropy -= a * std::log(a);
                        distance += a * static_cast<double>(prompt + t - 1 - j);
                        CHECK(near(at_cell(record, "/generate/weights", {0, t, key.site, h, j}), a));
                    }
                    CHECK(near(at_cell(record, "/generate/entropy", {0, t, key.site, h}), entropy));
                    CHECK(near(at_cell(record, "/generate/mean_distance", {0, t, key.site, h}), distance));
                    CHECK(near(at_cell(record, "/generate/sink", {0, t, key.site, h}), weights[h][0].item<double>()));
                }
            }
        }
    }
}

TEST_CASE("A replaced token changes what follows, and nothing before it", "[ask][generate]") {
    const test::AskedModel asked("llama");
    ask::GenerationOptions options;
    options.tokens = 4;
    const store::AskRecord plain = generated(asked, options);
    const auto second = static_cast<std::int64_t>(at_cell(plain, "/generate/token", {0, 1}));
    options.replaced[1] = second == 7 ? 8 : 7;
    const store::AskRecord other = generated(asked, options);
    CHECK(at_cell(other, "/generate/token", {0, 0}) == at_cell(plain, "/generate/token", {0, 0}));
    CHECK(at_cell(other, "/generate/token", {0, 1}) == static_cast<double>(options.replaced[1]));
    CHECK(at_cell(other, "/generate/top_id", {0, 1, 0}) == at_cell(plain, "/generate/top_id", {0, 1, 0}));
    CHECK_FALSE(near(at_cell(other, "/generate/log_probability", {0, 2}),
                     at_cell(plain, "/generate/log_probability", {0, 2}), 1e-9));
    options.replaced = {{4, 7}};
    CHECK_THROWS_MATCHES(generated(asked, options), Error, test::IsError(ErrorCode::usage, "--replace"));
}

TEST_CASE("A text ends after its end token, and draws depend on the seed alone", "[ask][generate]") {
    const test::AskedModel asked("llama");
    ask::GenerationOptions options;
    options.tokens = 4;
    options.end_tokens = {static_cast<std::int64_t>(at_cell(generated(asked, options), "/generate/token", {0, 0}))};
    const store::AskRecord ended = generated(asked, options);
    CHECK_FALSE(at_cell(ended, "/generate/token", {0, 1}) >= 0);
    CHECK(at_cell(ended, "/generate/done", {0}) == 1);
    test::AskedModel alone("llama");
    alone.texts.resize(1);
    options.replaced = {{2, 7}};
    CHECK_THROWS_MATCHES(generated(alone, options), Error,
                         test::IsError(ErrorCode::usage, "[--replace] expected a step that a text has before its end"));
    options.replaced = {{0, options.end_tokens[0]}};
    CHECK(generated(alone, options).complete);
    options.replaced.clear();
    options.end_tokens.clear();
    options.temperature = 2;
    options.seed = 3;
    const store::AskRecord one = generated(asked, options), two = generated(asked, options);
    for (std::int64_t t = 0; t < 4; ++t)
        CHECK(at_cell(one, "/generate/token", {1, t}) == at_cell(two, "/generate/token", {1, t}));
    CHECK_THROWS_MATCHES(generated(test::AskedModel("bert"), options), Error,
                         test::IsError(ErrorCode::usage, "generate"));
}
