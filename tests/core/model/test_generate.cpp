// SPDX-License-Identifier: GPL-3.0-or-later
// Decoding with caches against the full forward pass, and generation.
#include "tests/catch_with_torch.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include "core/model/generate/generate.h"
#include "core/model/towers/cache.h"
#include "core/model/trainable.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using test::golden_model;
using test::IsError;
using test::largest_difference;
using test::largest_value;
using test::TinyCheckpoint;

namespace {

TinyCheckpoint longer(const std::string& name) {
    TinyCheckpoint checkpoint = golden_model(name).checkpoint;
    if (name == "gpt2") {
        checkpoint.config["n_positions"] = 80;
        checkpoint.tensors["transformer.wpe.weight"] = {80, 18};
    }
    if (checkpoint.config.at("model_type") == "opt") {
        checkpoint.config["max_position_embeddings"] = 80;
        checkpoint.tensors["model.decoder.embed_positions.weight"] = {82, 20};
    }
    return checkpoint;
}

at::Tensor some_ids(const model::Model& model, std::int64_t sequences, std::int64_t length) {
    return at::arange(sequences * length, at::kLong)
        .mul(7)
        .remainder(model.config().vocabulary)
        .view({sequences, length});
}

/// Reads `ids` in pieces of `step` tokens (after a first one of `first`) with a cache; all hidden states.
at::Tensor piecewise(model::Model& model, const at::Tensor& ids, std::int64_t first, std::int64_t step) {
    const auto cache = model.new_cache();
    model::ForwardOptions options;
    options.cache = cache.get();
    options.beyond_positions = true;
    std::vector<at::Tensor> parts;
    std::int64_t count = first;
    for (std::int64_t at = 0; at < ids.size(1); at += count, count = step) {
        count = std::min(count, ids.size(1) - at);
        parts.push_back(model.forward({ids.narrow(1, at, count), {}, {}}, options));
        CHECK(cache->length() == at + count);
    }
    return at::cat(parts, 1);
}

}  // namespace

TEST_CASE("Token by token with a cache equals one pass", "[model][generate]") {
    for (const char* name : {"gpt2",
                             "llama",
                             "qwen2-windows",
                             "llama-rope-yarn",
                             "bloom",
                             "opt",
                             "opt-small-embedding-post-norm",
                             "neox",
                             "mistral",
                             "qwen3",
                             "gemma2",
                             "phi-key-norm-old",
                             "gptj",
                             "olmo2",
                             "gpt-oss",
                             "gemma3",
                             "phi3",
                             "smollm3",
                             "olmo",
                             "olmo3",
                             "granite",
                             "stablelm-key-norms-parallel-old",
                             "deepseek-v2",
                             "deepseek-v3",
                             "glm4-moe",
                             "llama4",
                             "llama4-plain-old"}) {
        const auto model = longer(name).build();
        model::ForwardOptions whole;
        whole.beyond_positions = true;
        // The steps of 65 tokens pass every shorter length; the other lengths are read in one piece and in several.
        for (const std::int64_t length : {1, 2, 63, 64, 65}) {
            CAPTURE(name, length);
            const at::Tensor ids = some_ids(*model, 2, length);
            const at::Tensor expected = model->forward({ids, {}, {}}, whole);
            const double bound = test::kFloatError * largest_value(expected);
            for (const std::int64_t step :
                 length == 65 ? std::vector<std::int64_t>{1, 7} : std::vector<std::int64_t>{length, 20}) {
                CHECK(largest_difference(piecewise(*model, ids, step, step), expected) < bound);
            }
        }
    }
}

TEST_CASE("A cached last token equals the full pass where frequencies depend on the length", "[model][generate]") {
    for (const char* name : {"llama-rope-dynamic", "llama-rope-longrope-long"}) {
        const auto model = golden_model(name).checkpoint.build();
        const at::Tensor ids = some_ids(*model, 1, 24);
        for (const std::int64_t length : {15, 16, 17, 24}) {
            CAPTURE(name, length);
            model::ForwardOptions whole;
            whole.beyond_positions = true;
            const at::Tensor text = ids.narrow(1, 0, length);
            const at::Tensor expected = model->forward({text, {}, {}}, whole).narrow(1, length - 1, 1);
            const at::Tensor last = piecewise(*model, text, 3, 1).narrow(1, length - 1, 1);
            // One layer: keys depend on no earlier attention, so the step equals the pass.
            CHECK(largest_difference(last, expected) < test::kFloatError * largest_value(expected));
        }
    }
}

TEST_CASE("A cloned cache goes its own way", "[model][generate]") {
    const auto model = golden_model("llama").checkpoint.build();
    const at::Tensor ids = some_ids(*model, 1, 9);
    const auto cache = model->new_cache();
    model::ForwardOptions options;
    options.cache = cache.get();
    model->forward({ids.narrow(1, 0, 5), {}, {}}, options);
    const auto copy = cache->clone();
    CHECK(copy->length() == 5);
    CHECK(copy->bytes() > 0);
    const at::Tensor one = model->forward({ids.narrow(1, 5, 2), {}, {}}, options);
    options.cache = copy.get();
    const at::Tensor other = model->forward({ids.narrow(1, 5, 2), {}, {}}, options);
    CHECK(one.equal(other));
    CHECK(copy->length() == 7);
}

TEST_CASE("Greedy generation takes the largest logit of the full pass at each step", "[model][generate]") {
    const auto model = golden_model("qwen2").checkpoint.build();
    std::vector<std::int64_t> text{5, 9, 11};
    model::GenerateOptions options;
    options.tokens = 12;
    std::vector<std::int64_t> heard;
    options.on_token = [&](std::int64_t token) { heard.push_back(token); };
    const std::vector<std::int64_t> made = model::generate(*model, text, options);
    REQUIRE(made.size() == 12);
    CHECK(heard == made);
    for (const std::int64_t token : made) {
        const auto length = static_cast<std::int64_t>(text.size());
        const at::Tensor ids = at::tensor(text, at::kLong).unsqueeze(0);
        const at::Tensor hidden = model->forward({ids, {}, {}}).select(0, 0).narrow(0, length - 1, 1);
        CHECK(model->logits(hidden).argmax().item<std::int64_t>() == token);
        text.push_back(token);
    }
}

TEST_CASE("Generation stops at an end token and at the last position", "[model][generate]") {
    const auto model = golden_model("llama").checkpoint.build();
    model::GenerateOptions options;
    options.tokens = 10;
    const std::vector<std::int64_t> prompt{1, 2, 3};
    const auto free_run = model::generate(*model, prompt, options);
    REQUIRE(free_run.size() == 10);
    options.end_tokens = {free_run[4]};
    const auto stopped = model::generate(*model, prompt, options);
    CHECK(stopped.back() == free_run[4]);
    CHECK(stopped.size() <= 5);
    options.end_tokens = {};
    options.tokens = 1000;
    CHECK(model::generate(*model, prompt, options).size() == 62);  // 64 positions; the 62nd is never read
    options.tokens = 0;
    CHECK(model::generate(*model, prompt, options).empty());
    options.tokens = 100;
    options.beyond_positions = true;
    CHECK(model::generate(*model, prompt, options).size() == 100);
}

TEST_CASE("A seed gives the same text again, another seed another", "[model][generate]") {
    const auto model = golden_model("gpt2").checkpoint.build();
    model::GenerateOptions options;
    options.tokens = 20;
    options.temperature = 1.5;
    options.seed = 4;
    const std::vector<std::int64_t> prompt{1};
    const auto first = model::generate(*model, prompt, options);
    CHECK(model::generate(*model, prompt, options) == first);
    options.seed = 5;
    CHECK(model::generate(*model, prompt, options) != first);
}

TEST_CASE("Generation refuses what cannot be", "[model][generate]") {
    const auto bert = golden_model("bert").checkpoint.build();
    const std::vector<std::int64_t> prompt{1}, none;
    CHECK_THROWS_MATCHES(model::generate(*bert, prompt, {}), Error, IsError(ErrorCode::usage, "encoder"));
    const auto llama = golden_model("llama").checkpoint.build();
    CHECK_THROWS_MATCHES(model::generate(*llama, none, {}), Error, IsError(ErrorCode::usage, "at least one token"));
    model::GenerateOptions options;
    for (const double temperature : {-1.0, std::nan(""), HUGE_VAL}) {
        options.temperature = temperature;
        CHECK_THROWS_MATCHES(model::generate(*llama, prompt, options), Error,
                             IsError(ErrorCode::usage, "finite temperature"));
    }
    options.temperature = 0;
    options.top_p = 0;
    CHECK_THROWS_MATCHES(model::generate(*llama, prompt, options), Error, IsError(ErrorCode::usage, "top-p"));
    Cancellation cancellation;
    cancellation.request();
    options.top_p = 1;
    options.cancellation = &cancellation;
    CHECK_THROWS_AS(model::generate(*llama, prompt, options), Stopped);
}

TEST_CASE("End tokens come from generation_config.json, else config.json", "[model][generate]") {
    const test::TemporaryFolder folder;
    golden_model("qwen2").checkpoint.write(folder.path());
    const auto tokens = [&] { return model::end_tokens(*checkpoint::Checkpoint::open(folder.path())); };
    const std::vector<std::int64_t> of_config{3, 4}, of_generation{7};
    CHECK(tokens() == of_config);
    test::write_file(folder / "generation_config.json", R"({"eos_token_id": 7})");
    CHECK(tokens() == of_generation);
    test::write_file(folder / "generation_config.json", "not JSON");
    CHECK_THROWS_MATCHES(tokens(), Error, IsError(ErrorCode::format, "generation_config.json"));
}

TEST_CASE("Logits that are no numbers end a generation by name", "[model][generate]") {
    const auto broken = model::Trainable::create(test::native_config({"standard"}).dump(), 1, at::kFloat);
    const at::NoGradGuard no_gradient;
    broken->weights().fill_(std::nan(""));
    const std::vector<std::int64_t> prompt{1};
    CHECK_THROWS_MATCHES(model::generate(broken->model(), prompt, {}), Error, IsError(ErrorCode::limit, "found NaN"));
    CHECK_THROWS_MATCHES(model::generate(broken->model(), prompt, {}), Error,
                         IsError(ErrorCode::limit, "activations: NaN or infinite, first in \"embedding\""));
}
