// SPDX-License-Identifier: GPL-3.0-or-later
// Guide streams: what RndEmbQK and FixedSeqQK attend by.
#include "tests/catch_with_torch.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include "core/base/error.h"
#include "core/model/generate/generate.h"
#include "core/model/towers/cache.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using model::Trainable;
using test::IsError;
using test::native_config;
using test::some_tokens;

namespace {

std::unique_ptr<Trainable> guided(const std::string& mixer, const nlohmann::json& options = {}) {
    return Trainable::create(native_config({mixer, "standard", mixer}, options).dump(), 4, at::kFloat);
}

/// Weights of attention at a site do not depend on the text: only its length.
at::Tensor queries_of(model::Model& model, const model::Batch& batch) {
    test::RecordingProbe probe(true, {"query"});
    model::ForwardOptions options;
    options.probe = &probe;
    model.forward(batch, options);
    return probe.at("query", 2);
}

}  // namespace

TEST_CASE("Queries and keys of a guided layer are the same for every text", "[guides]") {
    for (const char* mixer : {"rnd_emb_qk", "fixed_seq_qk"}) {
        INFO(mixer);
        const auto model = guided(mixer);
        model::Batch other = some_tokens(2, 20);
        other.ids = (other.ids + 11).remainder(29);
        const at::Tensor one = queries_of(model->model(), some_tokens(2, 20));
        CHECK(at::equal(one, queries_of(model->model(), other)));
        CHECK(at::equal(one.select(0, 0), one.select(0, 1)));
    }
}

TEST_CASE("Guides are kept for texts to come, and run again when weights change", "[guides]") {
    const auto model = guided("rnd_emb_qk");
    const model::Batch batch = some_tokens(1, 10);
    const at::Tensor before = model->model().forward(batch);
    CHECK(at::equal(before, model->model().forward(batch)));
    // A longer text first: the shorter one reads the same rows, up to the order of sums.
    model::Model& kept = model->model();
    kept.forward(some_tokens(1, 100));
    CHECK(test::largest_difference(kept.forward(batch), before) < test::kFloatError * test::largest_value(before));
    model->weights().mul_(1.5);
    const at::Tensor after = model->model().forward(batch);
    CHECK(test::largest_difference(after, before) > 0.01);
    const test::TemporaryFolder folder;
    NoProgress progress;
    model->save(folder / "saved", {}, progress, Cancellation());
    const auto read = model::Model::build(*checkpoint::Checkpoint::open(folder / "saved"));
    CHECK(at::equal(read->forward(batch), after));
}

TEST_CASE("Blocks that are skipped are skipped by the guide", "[guides]") {
    const auto model = guided("rnd_emb_qk");
    model::ForwardOptions options;
    options.skip_layers = {0, 2};
    const model::Batch batch = some_tokens(1, 10);
    const at::Tensor whole = model->model().forward(batch);
    model::Model& same = model->model();
    same.forward(batch);
    const at::Tensor skipped = same.forward(batch, options);
    CHECK(test::largest_difference(skipped, whole) > 0.01);
    CHECK(at::equal(same.forward(batch), whole));
    // Without its first block a guide is another one.
    options.skip_layers = {0};
    const at::Tensor without_first = same.forward(batch, options);
    CHECK(at::equal(model->model().forward(batch, options), without_first));
}

TEST_CASE("A text longer than the guide is refused, whatever is asked", "[guides]") {
    const auto model = guided("fixed_seq_qk", {{"max_position_embeddings", 12}});
    model::ForwardOptions options;
    options.beyond_positions = true;
    CHECK_NOTHROW(model->model().forward(some_tokens(1, 12), options));
    CHECK_THROWS_MATCHES(model->model().forward(some_tokens(1, 13), options), Error,
                         IsError(ErrorCode::limit, "at most 12 tokens"));
}

TEST_CASE("A generated text's cache holds the values of guided layers alone", "[guides]") {
    const auto standard = Trainable::create(native_config({"standard"}).dump(), 4, at::kFloat);
    const auto own = Trainable::create(native_config({"rnd_emb_qk"}).dump(), 4, at::kFloat);
    const auto bytes = [](Trainable& model) {
        const auto cache = model.model().new_cache();
        model::ForwardOptions options;
        options.cache = cache.get();
        model.model().forward(some_tokens(1, 64), options);
        return cache->bytes();
    };
    CHECK(2 * bytes(*own) == bytes(*standard));
}

TEST_CASE("A guide is run once for a text that is generated, as far as that will go", "[guides]") {
    static int embeddings = 0;
    const auto handle = at::addThreadLocalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
            embeddings += std::string_view(function.name()) == "aten::embedding" ? 1 : 0;
            return nullptr;
        }));
    const auto made_with = [](std::int64_t tokens, std::int64_t positions) {
        const auto model = guided("fixed_seq_qk", {{"max_position_embeddings", positions}});
        model::GenerateOptions options;
        options.tokens = tokens;
        embeddings = 0;
        const auto made = model::generate(model->model(), std::vector<std::int64_t>{1, 2, 3}, options);
        return static_cast<int>(made.size());
    };
    // Each pass embeds its token, the guide's once more.
    CHECK(made_with(60, 320) == 60);
    CHECK(embeddings == 60 + 1);
    CHECK(made_with(60, 40) == 38);
    CHECK(embeddings == 38 + 1);
    at::removeCallback(handle);
}

TEST_CASE("The guide's tokens are the training text's, and are saved", "[guides]") {
    const auto model = guided("fixed_seq_qk", {{"max_position_embeddings", 12}});
    REQUIRE(model->has_guide_ids());
    CHECK_FALSE(guided("rnd_emb_qk")->has_guide_ids());
    const at::Tensor before = model->model().forward(some_tokens(1, 9));
    model->set_guide_ids(some_tokens(1, 5).ids);
    const at::Tensor ids = test::find_parameter(*model, "model.guide_ids")->value;
    CHECK(at::equal(ids.narrow(0, 0, 5), some_tokens(1, 5).ids[0]));
    CHECK(at::equal(ids.narrow(0, 5, 5), some_tokens(1, 5).ids[0]));
    CHECK(test::largest_difference(model->model().forward(some_tokens(1, 9)), before) > 0.001);
    CHECK_THROWS_AS(model->set_guide_ids(at::full({3}, 29, at::kLong)), Error);
    CHECK_THROWS_AS(model->set_guide_ids(at::zeros({0}, at::kLong)), Error);
    const test::TemporaryFolder folder;
    NoProgress progress;
    model->save(folder / "saved", {}, progress, Cancellation());
    const auto read = Trainable::open(*checkpoint::Checkpoint::open(folder / "saved"), at::kFloat);
    CHECK(at::equal(test::find_parameter(*read, "model.guide_ids")->value, ids));
}

TEST_CASE("Rotary positions that depend on the text's length go with no guide", "[guides]") {
    nlohmann::json config = native_config({"rnd_emb_qk"});
    config["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 2.0}};
    CHECK_THROWS_MATCHES(Trainable::create(config.dump(), 1, at::kFloat), Error,
                         IsError(ErrorCode::unsupported, "for guide streams"));
}
