// SPDX-License-Identifier: GPL-3.0-or-later
// Configurations of encoder-decoders where they leave something out, and refused ones; batches that do not fit.
#include "tests/catch_with_torch.h"

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include "core/model/config.h"
#include "core/model/load/presets.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/families/golden_pair.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using namespace headscope::test::families;
using test::IsError;
using test::TinyCheckpoint;

namespace {

model::Batch one_pair(std::vector<std::int64_t> source, std::vector<std::int64_t> target) {
    model::Batch batch;
    batch.ids = at::tensor(source, at::kLong).unsqueeze(0);
    batch.target = at::tensor(target, at::kLong).unsqueeze(0);
    return batch;
}

}  // namespace

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
