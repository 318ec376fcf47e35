// SPDX-License-Identifier: GPL-3.0-or-later
// ask generate of models with an encoder and a decoder against passes over the source and the whole answer.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>

#include "core/ask/generation.h"
#include "core/ask/token_list.h"
#include "core/mixers/shared/key_value_cache.h"
#include "core/model/config.h"
#include "core/model/generate/generate.h"
#include "core/model/towers/cache.h"
#include "tests/core/ask/recorded_values.h"
#include "tests/core/tokenizer/words.h"

using namespace headscope;
using model::Point;
using test::at_cell;
using test::near;

namespace {

/// A model whose decoders begin with the first `prefix` tokens of their targets.
test::AskedModel with_prefix(const std::string& name, std::size_t prefix) {
    test::AskedModel asked(name);
    for (auto& target : asked.targets) target.resize(prefix);
    return asked;
}

store::AskRecord answered(const test::AskedModel& asked, const ask::GenerationOptions& options) {
    store::AskRecord record = asked.record("generate");
    NoProgress progress;
    ask::run_generation(*asked.model, options, record, progress, Cancellation());
    return record;
}

/// Equal in every bit but for NaN.
void check_same_step(const ask::GeneratedStep& a, const ask::GeneratedStep& b) {
    CHECK(a.token == b.token);
    CHECK(a.log_probability == b.log_probability);
    CHECK(a.top_id == b.top_id);
    REQUIRE(a.rows.size() == b.rows.size());
    for (std::size_t i = 0; i < a.rows.size(); ++i) {
        CHECK(a.rows[i].site == b.rows[i].site);
        CHECK(a.rows[i].entropy == b.rows[i].entropy);
        CHECK(a.rows[i].weights == b.rows[i].weights);
    }
}

}  // namespace

TEST_CASE("Each step of an answer has the distribution and rows of a pass over source and answer",
          "[ask][generate][encoder-decoder]") {
    constexpr std::int64_t steps = 3;
    for (const std::string name : {"t5", "bart", "umt5", "mbart"})
        for (const std::size_t prefix : {1U, 3U}) {
            INFO(name << ", prefix of " << prefix);
            const test::AskedModel asked = with_prefix(name, prefix);
            ask::GenerationOptions options;
            options.tokens = steps;
            options.maps = true;
            const store::AskRecord record = answered(asked, options);
            CHECK(record.complete);
            model::Batch batch = asked.batch(0);
            std::vector<std::int64_t> answer = asked.targets[0];
            for (std::int64_t t = 0; t < steps; ++t)
                answer.push_back(static_cast<std::int64_t>(at_cell(record, "/generate/token", {0, t})));
            answer.pop_back();  // the last token is not read
            batch.target = at::tensor(answer, at::kLong).unsqueeze(0);
            const at::Tensor logs =
                at::log_softmax(asked.model->logits(asked.model->forward(batch)[0]).to(at::kDouble), 1);
            const auto patterns = test::values_of_batch(asked, batch, {Point::pattern});
            for (std::int64_t t = 0; t < steps; ++t) {
                INFO("step " << t);
                const std::int64_t read = static_cast<std::int64_t>(prefix) + t;  // tokens of the decoder
                const at::Tensor row = logs[read - 1];
                const auto token = static_cast<std::int64_t>(at_cell(record, "/generate/token", {0, t}));
                CHECK(near(at_cell(record, "/generate/log_probability", {0, t}), row[token].item<double>()));
                CHECK(near(row.max().item<double>(), row[token].item<double>()));
                for (const auto& [key, pattern] : patterns) {
                    INFO("site " << key.site);
                    const Site& own = record.sites[static_cast<std::size_t>(key.site)];
                    if (own.stack == "encoder") {
                        CHECK(std::isnan(at_cell(record, "/generate/entropy", {0, t, key.site, 0})));
                        continue;
                    }
                    const at::Tensor weights = pattern[0].select(1, read - 1);  // [heads, keys]
                    const std::int64_t keys = own.is_cross() ? weights.size(1) : read;
                    for (std::int64_t h = 0; h < weights.size(0); ++h) {
                        double entropy = 0, distance = 0;
                        for (std::int64_t j = 0; j < keys; ++j) {
                            const double a = weights[h][j].item<double>();
                            if (a > 0) entropy -= a * std::log(a);
                            distance += a * static_cast<double>(keys - 1 - j);
                            CHECK(near(at_cell(record, "/generate/weights", {0, t, key.site, h, j}), a));
                        }
                        const std::vector<std::int64_t> head{0, t, key.site, h};
                        CHECK(near(at_cell(record, "/generate/entropy", head), entropy));
                        CHECK(near(at_cell(record, "/generate/sink", head), weights[h][0].item<double>()));
                        const double found = at_cell(record, "/generate/mean_distance", head);
                        CHECK((own.is_cross() ? std::isnan(found) : near(found, distance)));
                    }
                }
            }
        }
}

TEST_CASE("A step by step answer from the start token is that of headscope generate",
          "[ask][generate][encoder-decoder]") {
    for (const std::string name : {"t5", "bart"}) {
        INFO(name);
        test::AskedModel asked(name);
        const std::int64_t start = asked.model->config().decoder_start;
        REQUIRE(start >= 0);
        asked.targets = {{start}, {start}};
        ask::GenerationOptions options;
        options.tokens = 4;
        model::GenerateOptions greedy;
        greedy.tokens = 4;
        const std::vector<std::int64_t> expected = model::generate(*asked.model, asked.texts[0], greedy);
        REQUIRE(expected.size() == 4);
        const store::AskRecord record = answered(asked, options);
        for (std::int64_t t = 0; t < 4; ++t)
            CHECK(at_cell(record, "/generate/token", {0, t}) ==
                  static_cast<double>(expected[static_cast<std::size_t>(t)]));
    }
}

TEST_CASE("Numbers of an answer do not depend on steps that were taken back", "[ask][generate][encoder-decoder]") {
    for (const std::string name : {"t5", "umt5"})
        for (const std::size_t prefix : {1U, 3U}) {
            INFO(name << ", prefix of " << prefix);
            const test::AskedModel asked = with_prefix(name, prefix);
            ask::SessionOptions options;
            options.maps = true;
            const Cancellation none{};
            ask::GenerationSession session(*asked.model, options, asked.texts[0], asked.targets[0]);
            for (int t = 0; t < 4; ++t) session.step(none);
            for (const std::int64_t back : {2, 0}) {
                INFO("replaced step " << back);
                const std::int64_t other = session.steps()[static_cast<std::size_t>(back)].token == 7 ? 8 : 7;
                session.replace(back, other, none);
                while (session.steps().size() < 4) session.step(none);
                ask::GenerationSession fresh(*asked.model, options, asked.texts[0], asked.targets[0]);
                for (std::size_t t = 0; t < 4; ++t) {
                    const ask::GeneratedStep& known = session.steps()[t];
                    fresh.step(none, known.replaced ? std::optional(known.token) : std::nullopt);
                    check_same_step(fresh.steps()[t], known);
                }
            }
        }
}

TEST_CASE("Words of an answer are of the decoder's vocabulary where it has one of its own",
          "[ask][generate][encoder-decoder]") {
    const auto both = test::tokenizer_of_words({"source"}, test::tokenizer_of_words({"answer"}));
    store::AskRecord text;
    text.sequences.resize(1);
    text.sequences.front().ids = {0};
    text.add_dimension("/step", 1, "step");
    text.add_table("/generate/token", {"/step"}, "generated token", store::kTokenUnits, true).values = {0};
    store::AskRecord answer = text;
    answer.sequences.front().target = std::make_shared<const store::SequenceTokens>(text.sequences.front());
    ask::add_words(text, *both);
    ask::add_words(answer, *both);
    CHECK(text.words.at(0) == "source");
    CHECK(answer.words.at(0) == "answer");
}

TEST_CASE("A cache of a source keeps it when tokens of the decoder are dropped", "[ask][generate][encoder-decoder]") {
    mixers::KeyValueCache source(true);
    const at::Tensor keys = at::tensor(std::vector<float>{1, 2, 3}).view({1, 1, 3, 1});
    source.append(keys, keys);
    CHECK(source.can_drop(100));
    source.drop(2);
    CHECK(source.key().equal(keys));
    const auto copy = source.clone();
    copy->drop(2);
    CHECK(dynamic_cast<mixers::KeyValueCache&>(*copy).value().equal(keys));
    // A model's cache drops the target's tokens alone.
    const test::AskedModel asked("t5");
    const std::unique_ptr<model::Cache> cache = asked.model->new_cache();
    model::ForwardOptions options;
    options.cache = cache.get();
    asked.model->forward(asked.batch(0), options);
    const std::int64_t length = std::ssize(asked.targets[0]);
    REQUIRE(cache->can_drop(2));
    cache->drop(2);
    CHECK(cache->length() == length - 2);
    model::Batch rest;
    rest.target = at::tensor(asked.targets[0], at::kLong).narrow(0, length - 2, 2).unsqueeze(0);
    const at::Tensor again = asked.model->forward(rest, options)[0];
    const at::Tensor whole = asked.run(0).narrow(0, length - 2, 2);
    CHECK((again - whole).abs().max().item<double>() <= 1e-5 * std::max(1.0, test::largest_value(whole)));
}
