// SPDX-License-Identifier: GPL-3.0-or-later
// T5, BART and their relatives against transformers' eager float64 (tests/oracle/models/encoder_decoder_models.py),
// and their caches.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <nlohmann/json.hpp>

#include "core/mixers/shared/attend.h"
#include "core/model/generate/generate.h"
#include "core/model/towers/cache.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/families/family_forward.h"
#include "tests/core/model/families/golden_pair.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using namespace headscope::test::families;
using checkpoint::LoadAs;
using test::IsError;
using test::largest_difference;
using test::largest_value;
using test::RecordingProbe;
using test::TinyCheckpoint;

namespace {

const std::vector<std::string> kPairs{
    "t5",
    "t5-v1.1-bf16-sharded",
    "t5-saved-untied",
    "t5-three-embeddings",
    "mt5",
    "bart",
    "bart-untied-f16",
    "marian",
    "marian-two-vocabularies",
    "marian-two-untied",
    "marian-old-tables",
    "mbart",
    "mbart-old",
    "m2m-100",
    "m2m-100-old-beyond",
    "pegasus",
    "pegasus-old",
    "blenderbot",
    "blenderbot-old",
    "blenderbot-small",
    "umt5",
    "umt5-own-head",
};

/// Files with all internal values, and these with others that have padded sequences and a continuation.
const std::vector<std::string> kMeasured{"t5", "bart", "marian", "m2m-100", "umt5"};
const std::vector<std::string> kPadded{"t5",      "bart",    "marian",     "marian-two-vocabularies", "mbart",
                                       "m2m-100", "pegasus", "blenderbot", "blenderbot-small",        "umt5"};

}  // namespace

TEST_CASE("Logits of encoder-decoders equal those of transformers", "[model][golden][encoder-decoder]") {
    for (const std::string& name : kPairs) {
        for (const LoadAs precision : {LoadAs::float32, LoadAs::float64}) {
            CAPTURE(name, static_cast<int>(precision));
            const GoldenPair golden = golden_pair(name);
            const auto model = golden.checkpoint.build(precision);
            const at::Tensor logits = all_logits(*model, forward(*model, golden.batch));
            const at::Tensor expected = golden.logits();
            REQUIRE(largest_value(expected) > 0.1);
            CHECK(largest_difference(logits, expected, golden.batch.target_lengths) <
                  test::kFloatError * largest_value(expected));
        }
    }
}

TEST_CASE("Tied embeddings are read from the one name that the file has", "[model][golden][encoder-decoder]") {
    // As safetensors.torch.save_model writes them: of several names of one tensor the first in order.
    for (const auto& [name, from, to] : std::vector<std::array<std::string, 3>>{
             {"t5", "shared.weight", "decoder.embed_tokens.weight"},
             {"t5", "shared.weight", "encoder.embed_tokens.weight"},
             {"mt5", "shared.weight", "decoder.embed_tokens.weight"},
             {"bart", "model.shared.weight", "lm_head.weight"},
             {"bart", "model.shared.weight", "model.decoder.embed_tokens.weight"},
             {"marian", "model.shared.weight", "model.encoder.embed_tokens.weight"},
             {"marian-two-vocabularies", "model.decoder.embed_tokens.weight", "lm_head.weight"},
             {"umt5", "shared.weight", "lm_head.weight"}}) {
        CAPTURE(name, to);
        GoldenPair golden = golden_pair(name);
        if (golden.checkpoint.tensors.count(from) == 0) FAIL("no such tensor");
        golden.checkpoint.rename(from, to);
        const auto model = golden.checkpoint.build();
        const at::Tensor logits = all_logits(*model, model->forward(golden.batch));
        CHECK(largest_difference(logits, golden.logits(), golden.batch.target_lengths) <
              test::kFloatError * largest_value(golden.logits()));
    }
    GoldenPair nested = golden_pair("t5");
    const auto tensors = nested.checkpoint.tensors;
    for (const auto& [name, shape] : tensors) nested.checkpoint.rename(name, "model." + name);
    const auto model = nested.checkpoint.build();
    CHECK(largest_difference(all_logits(*model, model->forward(nested.batch)), nested.logits(),
                             nested.batch.target_lengths) < test::kFloatError * largest_value(nested.logits()));
}

TEST_CASE("Both towers' hidden states equal those of transformers", "[model][golden][encoder-decoder]") {
    for (const std::string& name : kMeasured) {
        CAPTURE(name);
        const GoldenPair golden = golden_pair(name);
        const auto model = golden.checkpoint.build();
        RecordingProbe probe(false, {"embedding", "encoder_embedding", "hidden", "final_norm", "encoder_final_norm"});
        forward(*model, golden.batch, &probe);
        const auto check = [&](const std::string& prefix, const char* expected, std::int64_t first, std::int64_t layers,
                               const at::Tensor& ids, const std::vector<std::int64_t>& lengths) {
            for (std::int64_t boundary = 0; boundary <= layers; ++boundary) {
                const at::Tensor ours = boundary == 0        ? probe.at(prefix + "embedding")
                                        : boundary == layers ? probe.at(prefix + "final_norm")
                                                             : probe.at("hidden", first + boundary - 1);
                const at::Tensor theirs =
                    golden.numbers(expected, ours.sizes().vec(), static_cast<std::size_t>(boundary));
                REQUIRE(ours.size(1) == ids.size(1));
                CHECK(largest_difference(ours, theirs, lengths) < test::kFloatError * largest_value(theirs));
            }
        };
        const std::int64_t encoder = model->config().encoder->layers, decoder = model->config().layers;
        check("encoder_", "encoder_hidden", 0, encoder, golden.batch.ids, golden.batch.lengths);
        check("", "hidden", encoder, decoder, golden.batch.target, golden.batch.target_lengths);
    }
}

TEST_CASE("Every site's weights equal those of transformers, the encoder's first", "[model][golden][encoder-decoder]") {
    for (const std::string& name : kMeasured) {
        CAPTURE(name);
        const GoldenPair golden = golden_pair(name);
        const auto model = golden.checkpoint.build();
        RecordingProbe probe(true, {"nothing"});
        forward(*model, golden.batch, &probe);
        const auto encoder = static_cast<std::size_t>(model->config().encoder->layers);
        REQUIRE(probe.sites.size() == encoder + 2 * static_cast<std::size_t>(model->config().layers));
        for (const RecordingProbe::Measured& site : probe.sites) {
            const auto number = static_cast<std::size_t>(site.site);
            const bool in_encoder = number < encoder, cross = !in_encoder && (number - encoder) % 2 == 1;
            const std::size_t layer = in_encoder ? number : encoder + (number - encoder) / 2;
            CAPTURE(number);
            CHECK(site.description.layer == static_cast<std::int32_t>(layer));
            CHECK(site.description.stack == (in_encoder ? "encoder" : "decoder"));
            CHECK(site.description.kind == (cross ? "cross" : "self"));
            CHECK(site.description.query_stream == (in_encoder ? "tokens" : "target"));
            CHECK(site.description.key_stream == (in_encoder || cross ? "tokens" : "target"));
            CHECK(site.description.causal == (!in_encoder && !cross));
            const std::int64_t keys = site.key.size(2), heads = site.query.size(1);
            const at::Tensor unit = at::eye(keys, at::kFloat).expand({site.key.size(0), site.key.size(1), keys, keys});
            const at::Tensor weights = mixers::dense_attention(site.query, site.key, unit, site.rule);
            const at::Tensor theirs = golden.numbers(
                in_encoder ? "encoder_attention" : (cross ? "cross_attention" : "attention"),
                {site.query.size(0), heads, site.query.size(2), keys}, in_encoder ? layer : layer - encoder);
            const auto& lengths = in_encoder ? golden.batch.lengths : golden.batch.target_lengths;
            CHECK(largest_difference(weights.transpose(1, 2), theirs.transpose(1, 2), lengths) < test::kFloatError);
            // The kernel measured those weights.
            const at::Tensor first = theirs.select(3, 0);
            for (std::int64_t b = 0; b < theirs.size(0); ++b) {
                const std::int64_t rows = lengths[static_cast<std::size_t>(b)];
                for (std::int64_t h = 0; h < heads; ++h) {
                    const double sink = first[b][h].narrow(0, 0, rows).mean().item<double>();
                    CHECK(std::abs(site.statistics.sink[static_cast<std::size_t>(b * heads + h)] - sink) <
                          test::kFloatError);
                }
            }
        }
    }
}

TEST_CASE("A padded pair gives what it gives alone", "[model][encoder-decoder]") {
    for (const std::string& name : kPadded) {
        CAPTURE(name);
        const GoldenPair golden = golden_pair(name);
        const auto model = golden.checkpoint.build();
        const at::Tensor together = model->forward(golden.batch);
        for (std::int64_t s = 0; s < 2; ++s) {
            const auto at = static_cast<std::size_t>(s);
            model::Batch alone;
            alone.ids = golden.batch.ids.narrow(0, s, 1).narrow(1, 0, golden.batch.lengths[at]);
            alone.target = golden.batch.target.narrow(0, s, 1).narrow(1, 0, golden.batch.target_lengths[at]);
            const at::Tensor hidden = model->forward(alone);
            const at::Tensor row = together.narrow(0, s, 1).narrow(1, 0, golden.batch.target_lengths[at]);
            CHECK(largest_difference(hidden, row) < test::kFloatError * largest_value(hidden));
        }
        const at::Tensor loss = model->next_token_loss(golden.batch, together);
        REQUIRE(loss.sizes() == golden.batch.target.sizes());
        for (std::int64_t s = 0; s < 2; ++s) {
            const std::int64_t real = golden.batch.target_lengths[static_cast<std::size_t>(s)];
            for (std::int64_t i = 0; i < loss.size(1); ++i)
                CHECK(std::isnan(loss[s][i].item<double>()) == (i + 1 >= real));
            const at::Tensor row = golden.logits()[s][0];
            const double expected =
                (row.logsumexp(0) - row[golden.batch.target[s][1].item<std::int64_t>()]).item<double>();
            CHECK(loss[s][0].item<double>() == Approx(expected).epsilon(test::kFloatError));
        }
    }
}

TEST_CASE("A target read in pieces with a cache equals one pass", "[model][generate][encoder-decoder]") {
    for (const std::string& name : kPadded) {
        const GoldenPair golden = golden_pair(name);
        const auto model = golden.checkpoint.build();
        model::Batch whole = golden.batch;
        whole.lengths = whole.target_lengths = {};
        const at::Tensor expected = model->forward(whole);
        for (const std::int64_t step : {1, 4}) {
            CAPTURE(name, step);
            const auto cache = model->new_cache();
            model::ForwardOptions options;
            options.cache = cache.get();
            std::vector<at::Tensor> parts;
            for (std::int64_t at = 0; at < whole.target.size(1); at += step) {
                model::Batch piece;
                if (at == 0) piece.ids = whole.ids;
                piece.target = whole.target.narrow(1, at, std::min(step, whole.target.size(1) - at));
                parts.push_back(model->forward(piece, options));
            }
            CHECK(cache->length() == whole.target.size(1));
            CHECK(cache->bytes() > 0);
            CHECK(largest_difference(at::cat(parts, 1), expected) < test::kFloatError * largest_value(expected));
            // Neither a second source nor another number of sequences can follow.
            CHECK_THROWS_MATCHES(model->forward(whole, options), Error, IsError(ErrorCode::usage, "batch"));
            CHECK_THROWS_AS(model->forward({{}, {}, {}, whole.target.narrow(0, 0, 1).narrow(1, 0, 1)}, options), Error);
        }
    }
}

TEST_CASE("Encoder-decoders generate what transformers does", "[model][generate][encoder-decoder]") {
    for (const std::string& name : kPadded) {
        CAPTURE(name);
        const GoldenPair golden = golden_pair(name);
        const auto model = golden.checkpoint.build();
        auto prompt = golden.json.at("ids")[0].get<std::vector<std::int64_t>>();
        prompt.resize(static_cast<std::size_t>(golden.batch.lengths[0]));
        auto expected = golden.json.at("generated").get<std::vector<std::int64_t>>();
        REQUIRE(expected.front() == model->config().decoder_start);
        expected.erase(expected.begin());
        model::GenerateOptions options;
        options.tokens = static_cast<std::int64_t>(expected.size());
        CHECK(model::generate(*model, prompt, options) == expected);
    }
    // The source takes no room from the answer: 20 positions, of which the start token has one.
    const GoldenPair bart = golden_pair("bart");
    const auto model = bart.checkpoint.build();
    CHECK(model::generate(*model, std::vector<std::int64_t>(20, 5), {}).size() == 20);
    CHECK_THROWS_MATCHES(model::generate(*model, std::vector<std::int64_t>(21, 5), {}), Error,
                         IsError(ErrorCode::limit, "source length"));
}

TEST_CASE("What towers share is one tensor, counted and loaded once", "[model][encoder-decoder]") {
    const GoldenPair golden = golden_pair("t5");
    std::int64_t elements = 0;
    for (const auto& [name, shape] : golden.checkpoint.tensors) {
        std::int64_t count = 1;
        for (const std::int64_t size : shape) count *= size;
        elements += count;
    }
    const auto model = golden.checkpoint.build();
    CHECK(model->parameters() == elements);
    CHECK(model->report().left_over.empty());
    CHECK(model->report().matched == golden.checkpoint.tensors.size());
    CHECK(model->mixers() == std::vector<std::string>(3, "standard"));
    const auto described = nlohmann::json::parse(model->config().to_json());
    CHECK(described["encoder"]["layers"] == 2);
    CHECK(described["layers"] == 1);
    CHECK(described["positions"] == "bucketed");
    CHECK(described["encoder"]["causal"] == false);
}

TEST_CASE("A file of T5's encoder alone opens as an encoder", "[model][golden][encoder-decoder]") {
    const GoldenPair golden = golden_pair("t5-encoder");
    const auto model = golden.checkpoint.build();
    CHECK_FALSE(model->causal());
    CHECK_FALSE(model->has_head());
    CHECK(model->sites().front().stack == "text");
    const at::Tensor hidden = model->forward(golden.batch);
    const at::Tensor expected = golden.numbers("encoder_hidden", hidden.sizes().vec(), 2);
    CHECK(largest_difference(hidden, expected, golden.batch.lengths) < test::kFloatError * largest_value(expected));

    // A file that lost its decoder is not taken for one.
    TinyCheckpoint lost = golden_pair("t5").checkpoint;
    for (auto it = lost.tensors.begin(); it != lost.tensors.end();)
        it = it->first.rfind("decoder.", 0) == 0 ? lost.tensors.erase(it) : std::next(it);
    CHECK_THROWS_AS(lost.build(), Error);
}

TEST_CASE("A setting of an encoder-decoder read wrongly would show", "[model][golden][encoder-decoder]") {
    struct Change {
        const char* name;
        const char* key;
        nlohmann::json value;
    };
    const std::vector<Change> changes{
        {"t5", "relative_attention_max_distance", 7},
        {"t5", "layer_norm_epsilon", 1e-2},
        {"t5", "feed_forward_proj", "gelu"},
        {"t5", "dense_act_fn", "tanh"},
        {"t5", "scale_decoder_outputs", false},
        {"t5-v1.1-bf16-sharded", "tie_word_embeddings", true},
        {"t5-v1.1-bf16-sharded", "feed_forward_proj", "gated-silu"},
        {"t5-saved-untied", "scale_decoder_outputs", true},
        {"mt5", "model_type", "t5"},
        {"bart", "scale_embedding", false},
        {"bart", "activation_function", "relu"},
        {"marian", "scale_embedding", false},
        {"marian", "activation_function", "relu"},
        {"mbart", "scale_embedding", false},
        {"m2m-100", "scale_embedding", false},
        {"m2m-100", "pad_token_id", 6},
        {"pegasus", "activation_function", "relu"},
        {"pegasus", "model_type", "m2m_100"},
        {"blenderbot-small", "activation_function", "relu"},
        {"umt5", "relative_attention_max_distance", 7},
    };
    for (const Change& change : changes) {
        CAPTURE(change.name, change.key);
        GoldenPair golden = golden_pair(change.name);
        golden.checkpoint.config[change.key] = change.value;
        // A consequence of it stands in every file that transformers saves, and wins.
        if (change.key == std::string("feed_forward_proj")) golden.checkpoint.config.erase("dense_act_fn");
        const auto model = golden.checkpoint.build();
        const at::Tensor expected = golden.logits();
        CHECK(largest_difference(all_logits(*model, model->forward(golden.batch)), expected,
                                 golden.batch.target_lengths) > 2 * test::kFloatError * largest_value(expected));
    }
}
