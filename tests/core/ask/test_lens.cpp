// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>

#include "core/ask/lens.h"
#include "core/ask/parts.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/recording_probe.h"

using namespace headscope;
using test::at_cell;
using test::near;

namespace {

store::AskRecord lens_of(const test::AskedModel& asked, const ask::LensOptions& options) {
    store::AskRecord record = asked.record("lens");
    NoProgress progress;
    ask::run_lens(*asked.model, options, record, progress, Cancellation());
    return record;
}

}  // namespace

TEST_CASE("Each boundary goes through the model's own norm and head, the last one is the output", "[ask][lens]") {
    for (const std::string name : {"gpt2", "llama", "gemma2", "hybrid-qwen3-next"}) {
        INFO(name);
        const test::AskedModel asked(name);
        const store::AskRecord record = lens_of(asked, {});
        CHECK(record.complete);
        const std::int64_t layers = asked.model->config().layers, length = std::ssize(asked.texts[0]);
        test::RecordingProbe probe(false);
        model::Batch batch;
        batch.ids = asked.ids(0);
        model::ForwardOptions options;
        options.probe = &probe;
        const at::Tensor output = asked.model->forward(batch, options)[0];
        const auto logs = [&](const at::Tensor& normed) {
            return at::log_softmax(asked.model->logits(normed).to(at::kDouble), 1);
        };
        const at::Tensor last = logs(output);
        for (std::int64_t b = 0; b <= layers; ++b) {
            const at::Tensor stream = b == 0 ? probe.at("embedding")[0] : probe.at("hidden", b - 1)[0];
            const at::Tensor here = logs(ask::final_norm(*asked.model, stream));
            for (std::int64_t p = 0; p + 1 < length; ++p) {
                const std::int64_t target = asked.texts[0][static_cast<std::size_t>(p + 1)];
                const double own = here[p][target].item<double>();
                CHECK(near(at_cell(record, "/lens/log_probability", {0, b, p}), own));
                CHECK(near(at_cell(record, "/lens/kl", {0, b, p}),
                           (last[p].exp() * (last[p] - here[p])).sum().item<double>()));
                CHECK(at_cell(record, "/lens/rank", {0, b, p}) ==
                      static_cast<double>(here[p].gt(here[p][target]).sum().item<std::int64_t>()));
                CHECK(near(at_cell(record, "/lens/top_probability", {0, b, p, 0}), here[p].exp().max().item<double>()));
            }
        }
        CHECK(std::abs(at_cell(record, "/lens/kl", {0, layers, 0})) < 1e-9);
        CHECK(std::isnan(at_cell(record, "/lens/log_probability", {0, 0, length - 1})));
    }
}

TEST_CASE("A stopped lens resumes with the same numbers, and a file holds them", "[ask][lens]") {
    const test::AskedModel asked("llama");
    const store::AskRecord whole = lens_of(asked, {});
    store::AskRecord record = asked.record("lens");
    NoProgress progress;
    Cancellation stop;
    ask::LensOptions options;
    options.saved = [&] { stop.request(); };
    CHECK_THROWS_AS(ask::run_lens(*asked.model, options, record, progress, stop), Stopped);
    CHECK_FALSE(record.complete);
    const test::TemporaryFolder folder;
    store::write_ask(folder / "a.ask.h5", record);
    store::AskRecord again = asked.record("lens");
    again.tables = store::read_ask(folder / "a.ask.h5").tables;
    ask::run_lens(*asked.model, {}, again, progress, Cancellation());
    store::write_ask(folder / "a.ask.h5", again);
    const store::AskRecord stored = store::read_ask(folder / "a.ask.h5");
    CHECK(stored.complete);
    CHECK(stored.tool == "lens");
    CHECK(stored.sequences[1].ids == whole.sequences[1].ids);
    for (const store::AskTable& table : whole.tables) {
        const store::AskTable& other = stored.table(table.path);
        CHECK(other.dimensions == table.dimensions);
        CHECK(other.long_name == table.long_name);
        REQUIRE(other.values.size() == table.values.size());
        for (std::size_t i = 0; i < table.values.size(); ++i)
            CHECK((std::isnan(table.values[i]) ? (std::isnan(other.values[i]) || other.values[i] == -1)
                                               : other.values[i] == table.values[i]));
    }
    const std::string csv = store::ask_csv(stored, stored.table("/lens/rank"));
    CHECK(csv.starts_with("sequence,boundary,token,value\n0,0,0,"));
}

TEST_CASE("A target may be a set of tokens, and must be in the vocabulary", "[ask][lens]") {
    const test::AskedModel asked("llama");
    ask::LensOptions options;
    options.target = {1, 2};
    const store::AskRecord both = lens_of(asked, options);
    options.target = {1};
    const store::AskRecord one = lens_of(asked, options);
    options.target = {2};
    const store::AskRecord other = lens_of(asked, options);
    const auto probability = [](const store::AskRecord& record) {
        return std::exp(at_cell(record, "/lens/log_probability", {1, 1, 2}));
    };
    CHECK(near(probability(both), probability(one) + probability(other)));
    CHECK(at_cell(both, "/lens/rank", {1, 1, 2}) ==
          std::min(at_cell(one, "/lens/rank", {1, 1, 2}), at_cell(other, "/lens/rank", {1, 1, 2})));
    options.target = {asked.model->config().vocabulary};
    CHECK_THROWS_MATCHES(lens_of(asked, options), Error, test::IsError(ErrorCode::usage, "--target"));
    CHECK_THROWS_MATCHES(lens_of(test::AskedModel("bert"), {}), Error, test::IsError(ErrorCode::usage, "ask lens"));
}
