// SPDX-License-Identifier: GPL-3.0-or-later
// T5, BART and their relatives against transformers' eager float64 (tests/oracle/models/encoder_decoder_models.py),
// their caches, and what is refused.
#include "tests/catch_with_torch.h"

#include <array>
#include <fstream>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/tensor.h>

#include "core/mixers/shared/attend.h"
#include "core/model/generate/generate.h"
#include "core/model/load/presets.h"
#include "core/model/towers/cache.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using checkpoint::LoadAs;
using test::IsError;
using test::largest_difference;
using test::largest_value;
using test::RecordingProbe;
using test::TinyCheckpoint;

namespace {

struct GoldenPair {
    TinyCheckpoint checkpoint;
    model::Batch batch;
    nlohmann::json json;

    /// One of the lists of numbers, in this shape; `index` of a list of them.
    at::Tensor numbers(const char* name, std::vector<std::int64_t> shape, std::size_t index = 0) const {
        const nlohmann::json& list = json.at(name);
        const auto flat = (list[0].is_array() ? list[index] : list).get<std::vector<double>>();
        return at::tensor(flat, at::kDouble).reshape(shape);
    }
    at::Tensor logits() const {
        const auto& config = checkpoint.config;
        const char* const key = config.contains("decoder_vocab_size") && !config["share_encoder_decoder_embeddings"]
                                    ? "decoder_vocab_size"
                                    : "vocab_size";
        return numbers("logits", {batch.target.size(0), batch.target.size(1), config[key]});
    }
};

at::Tensor rows_of(const nlohmann::json& rows) {
    std::vector<at::Tensor> all;
    for (const auto& row : rows) all.push_back(at::tensor(row.get<std::vector<std::int64_t>>(), at::kLong));
    std::vector<at::Tensor> stacked;
    for (const at::Tensor& row : all) stacked.push_back(row.unsqueeze(0));
    return at::cat(stacked, 0);
}

GoldenPair golden_pair(const std::string& name) {
    std::ifstream file(test::golden_model_file(name));
    REQUIRE(file.good());
    GoldenPair golden;
    golden.json = nlohmann::json::parse(file);
    golden.checkpoint = test::golden_checkpoint(name);
    golden.batch.ids = rows_of(golden.json.at("ids"));
    golden.batch.lengths = golden.json.value("lengths", std::vector<std::int64_t>());
    if (golden.json.contains("target")) golden.batch.target = rows_of(golden.json["target"]);
    golden.batch.target_lengths = golden.json.value("target_lengths", std::vector<std::int64_t>());
    return golden;
}

at::Tensor all_logits(model::Model& model, const at::Tensor& hidden) {
    return model.logits(hidden.flatten(0, 1)).unflatten(0, {hidden.size(0), hidden.size(1)});
}

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

at::Tensor forward(model::Model& model, const model::Batch& batch, model::Probe* probe = nullptr) {
    model::ForwardOptions options;
    options.beyond_positions = true;
    options.probe = probe;
    return model.forward(batch, options);
}

model::Batch one_pair(std::vector<std::int64_t> source, std::vector<std::int64_t> target) {
    model::Batch batch;
    batch.ids = at::tensor(source, at::kLong).unsqueeze(0);
    batch.target = at::tensor(target, at::kLong).unsqueeze(0);
    return batch;
}

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

TEST_CASE("The start token of generation_config.json goes before config.json's", "[model][encoder-decoder]") {
    const GoldenPair golden = golden_pair("t5");
    const auto start_of = [](const TinyCheckpoint& tiny, const char* generation) {
        const test::TemporaryFolder folder;
        tiny.write(folder.path());
        if (generation) test::write_file(folder / "generation_config.json", generation);
        return model::inspect(*checkpoint::Checkpoint::open(folder.path())).config.decoder_start;
    };
    TinyCheckpoint tiny = golden.checkpoint;
    tiny.config["decoder_start_token_id"] = 7;
    CHECK(start_of(tiny, R"({"decoder_start_token_id": 9})") == 9);
    CHECK(start_of(tiny, R"({"num_beams": 2})") == 7);
    tiny.config.erase("decoder_start_token_id");
    CHECK(start_of(tiny, R"({"decoder_start_token_id": 9})") == 9);
    tiny.config["pad_token_id"] = 3;
    CHECK(start_of(tiny, nullptr) == 3);
    TinyCheckpoint multilingual = golden_pair("mt5").checkpoint;
    multilingual.config.erase("decoder_start_token_id");
    multilingual.config["pad_token_id"] = 3;
    CHECK(start_of(multilingual, nullptr) == 0);
    tiny.config["decoder_start_token_id"] = 41;
    CHECK_THROWS_MATCHES(start_of(tiny, nullptr), Error,
                         IsError(ErrorCode::mismatch, "config.json: decoder_start_token_id"));
    CHECK_THROWS_MATCHES(start_of(tiny, R"({"decoder_start_token_id": 50})"), Error,
                         IsError(ErrorCode::mismatch, "generation_config.json: decoder_start_token_id"));
}

TEST_CASE("Configurations of BART's relatives that leave everything out mean what transformers' do",
          "[model][encoder-decoder]") {
    struct Least {
        const char* type;
        std::int64_t vocabulary, hidden, encoder_layers, layers, heads, feed_forward, positions, start;
        model::Activation activation;
        bool scaled;
    };
    using model::Activation;
    for (const Least& least :
         std::vector<Least>{{"marian", 58101, 1024, 12, 12, 16, 4096, 1024, 58100, Activation::gelu, false},
                            {"mbart", 50265, 1024, 12, 12, 16, 4096, 1024, 0, Activation::gelu, false},
                            {"m2m_100", 128112, 1024, 12, 12, 16, 4096, 1024, 2, Activation::relu, true},
                            {"pegasus", 50265, 1024, 12, 12, 16, 4096, 1024, 0, Activation::gelu, false},
                            {"blenderbot", 8008, 2560, 2, 24, 32, 10240, 128, 1, Activation::gelu, false},
                            {"blenderbot-small", 50265, 512, 8, 8, 16, 2048, 512, 1, Activation::gelu, false}}) {
        CAPTURE(least.type);
        const auto config = model::inspect_config(nlohmann::json{{"model_type", least.type}}.dump()).config;
        CHECK(config.vocabulary == least.vocabulary);
        CHECK(config.hidden == least.hidden);
        CHECK(config.encoder->layers == least.encoder_layers);
        CHECK(config.layers == least.layers);
        CHECK(config.heads == least.heads);
        CHECK(config.feed_forward == least.feed_forward);
        CHECK(config.max_positions == least.positions);
        CHECK(config.decoder_start == least.start);
        CHECK(config.activation == least.activation);
        CHECK((config.encoder->embedding_scale != 1) == least.scaled);
        CHECK(config.tied_head);
    }
    // The start token that the class says may be none of a smaller vocabulary.
    const auto small = nlohmann::json{{"model_type", "marian"}, {"vocab_size", 100}}.dump();
    CHECK(model::inspect_config(small).config.decoder_start == -1);
    const auto language = nlohmann::json{{"model_type", "mbart"}, {"bos_token_id", 7}}.dump();
    CHECK(model::inspect_config(language).config.decoder_start == 7);
}

TEST_CASE("Positions that a file does not hold are no part of the model", "[model][encoder-decoder]") {
    for (const char* name : {"marian", "pegasus-old", "m2m-100-old-beyond"}) {
        CAPTURE(name);
        const auto model = golden_pair(name).checkpoint.build();
        const auto described = nlohmann::json::parse(model->config().to_json());
        CHECK(described["positions"] == "sinusoidal");
        CHECK(described["fairseq_sinusoids"] == (name[1] == '2'));
        // The tables of old files are named.
        CHECK(model->report().left_over.size() == (name[1] == '2' ? 2 : 0));
    }
    CHECK(golden_pair("marian-old-tables").checkpoint.build()->report().left_over.empty());
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

TEST_CASE("Batches and configurations that do not fit an encoder-decoder are refused", "[model][encoder-decoder]") {
    GoldenPair golden = golden_pair("t5");
    const auto model = golden.checkpoint.build();
    const auto refuses = [&](const model::Batch& batch, ErrorCode code, const std::string& where) {
        CHECK_THROWS_MATCHES(model->forward(batch), Error, IsError(code, where));
    };
    model::Batch batch = one_pair({1, 2, 3}, {0, 4});
    batch.target = at::Tensor();
    refuses(batch, ErrorCode::usage, "batch");
    refuses(one_pair({1, 41}, {0, 4}), ErrorCode::limit, "source sequence 0, token 1");
    refuses(one_pair({1, 40}, {0, 4, 41}), ErrorCode::limit, "target sequence 0, token 2");
    batch = one_pair({1, 2, 3}, {0, 4});
    batch.ids = golden.batch.ids;
    refuses(batch, ErrorCode::usage, "batch");
    const auto plain = test::golden_model("llama");
    CHECK_THROWS_MATCHES(plain.checkpoint.build()->forward(one_pair({1, 2}, {0})), Error,
                         IsError(ErrorCode::usage, "batch"));

    const auto refuses_config = [](TinyCheckpoint tiny, const char* key, const nlohmann::json& value, ErrorCode code) {
        tiny.config[key] = value;
        CHECK_THROWS_MATCHES(tiny.build(), Error, IsError(code, std::string("config.json: ") + key));
    };
    const auto t5 = golden.checkpoint, bart = golden_pair("bart").checkpoint;
    refuses_config(t5, "relative_attention_max_distance", 4, ErrorCode::unsupported);
    refuses_config(t5, "relative_attention_max_distance", 1 << 24, ErrorCode::unsupported);
    refuses_config(t5, "relative_attention_num_buckets", 2, ErrorCode::unsupported);
    refuses_config(t5, "feed_forward_proj", "gated-maxout", ErrorCode::unsupported);
    refuses_config(t5, "num_layers", 3'000'000, ErrorCode::mismatch);
    refuses_config(t5, "num_decoder_layers", 99'999, ErrorCode::mismatch);
    refuses_config(bart, "normalize_before", true, ErrorCode::unsupported);
    refuses_config(golden_pair("m2m-100").checkpoint, "pad_token_id", nullptr, ErrorCode::unsupported);
    TinyCheckpoint small = golden_pair("m2m-100").checkpoint;
    small.config["encoder_attention_heads"] = small.config["decoder_attention_heads"] = 1;
    refuses_config(small, "d_model", 3, ErrorCode::unsupported);
    // Each tower names its own vocabulary.
    const auto two = golden_pair("marian-two-vocabularies").checkpoint;
    const auto refuses_size = [](TinyCheckpoint tiny, const std::string& key, const std::string& tensor) {
        tiny.config[key] = 40;
        CHECK_THROWS_WITH(tiny.build(), Catch::Contains(tensor) && Catch::Contains("[40, 21] (" + key + "; d_model)"));
    };
    refuses_size(two, "vocab_size", "model.encoder.embed_tokens.weight");
    refuses_size(two, "decoder_vocab_size", "model.decoder.embed_tokens.weight");
    const auto marian = golden_pair("marian-two-vocabularies");
    const auto built = marian.checkpoint.build();
    CHECK(built->config().vocabulary == 37);
    CHECK(built->config().source_vocabulary() == 43);
    CHECK_NOTHROW(built->forward(one_pair({42}, {2, 36})));
    CHECK_THROWS_MATCHES(built->forward(one_pair({42}, {2, 37})), Error,
                         IsError(ErrorCode::limit, "target sequence 0, token 1"));
    // Sinusoids that are a table end with it; fairseq's go on.
    model::ForwardOptions beyond;
    beyond.beyond_positions = true;
    CHECK_THROWS_MATCHES(built->forward(one_pair(std::vector<std::int64_t>(21, 5), {2}), beyond), Error,
                         IsError(ErrorCode::limit, "source length"));
    const auto endless = golden_pair("m2m-100").checkpoint.build();
    CHECK_THROWS_MATCHES(endless->forward(one_pair(std::vector<std::int64_t>(21, 5), {2})), Error,
                         IsError(ErrorCode::limit, "source length"));
    CHECK_NOTHROW(endless->forward(one_pair(std::vector<std::int64_t>(21, 5), {2}), beyond));
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
