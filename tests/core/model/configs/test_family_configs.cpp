// SPDX-License-Identifier: GPL-3.0-or-later
// Configurations of families of every kind: keys that none of them reads, encoders, and the family of add-family.md.
#include "tests/catch_with_torch.h"

#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/model/config.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/configs/decoder_config.h"
#include "tests/core/model/configs/family_config.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using namespace headscope::test::decoders;
using model::ModelConfig;
using nlohmann::json;
using test::IsError;
using test::read;

TEST_CASE("The family in add-family.md is the one that is compiled", "[model][families]") {
    const auto text_of = [](const std::string& path) {
        std::ifstream file(std::string(HEADSCOPE_SOURCE_DIR) + "/" + path);
        std::ostringstream text;
        text << file.rdbuf();
        return text.str();
    };
    const std::string guide = text_of("docs/dev/add-family.md"), recipe = text_of("core/model/families/qwen3.cpp");
    REQUIRE_FALSE(recipe.empty());
    CHECK(guide.find("```cpp\n" + recipe + "```") != std::string::npos);
    CHECK(text_of("core/model/families/list.inc").find("\nHEADSCOPE_FAMILY(qwen3, kQwen3)\n") != std::string::npos);
    CHECK(guide.find("    HEADSCOPE_FAMILY(qwen3, kQwen3)\n") != std::string::npos);
}

TEST_CASE("What transformers consults and no family reads is refused by its key, of every family",
          "[model][families]") {
    const auto refuses_key = [](const test::TinyCheckpoint& file, const std::string& key, const json& value) {
        test::TinyCheckpoint changed = file;
        changed.config[key] = value;
        INFO(key << " = " << value.dump());
        CHECK_THROWS_MATCHES(changed.build(), Error, IsError(ErrorCode::unsupported, key + "]"));
        changed.config[key] = nullptr;
        if (key != "is_causal") CHECK_NOTHROW(changed.build());
    };
    for (const char* name :
         {"gpt2",       "llama",      "qwen2",    "opt",        "bloom",      "neox",       "mistral", "qwen3",
          "gemma2",     "phi",        "gptj",     "olmo2",      "gpt-oss",    "bert",       "roberta", "distilbert",
          "albert",     "modernbert", "electra",  "mpnet",      "eurobert",   "nomic-bert", "esm",     "t5",
          "mt5",        "bart",       "gemma",    "gemma3",     "phi3",       "smollm3",    "olmo",    "olmo3",
          "granite",    "starcoder2", "stablelm", "glm",        "glm4",       "cohere",     "cohere2", "falcon",
          "mpt",        "nemotron",   "exaone4",  "ministral",  "ministral3", "seed-oss",   "apertus", "mixtral",
          "qwen2-moe",  "qwen3-moe",  "olmoe",    "granitemoe", "marian",     "mbart",      "m2m-100", "pegasus",
          "blenderbot", "umt5",       "fnet"}) {
        DYNAMIC_SECTION(name) {
            const test::TinyCheckpoint file = test::golden_checkpoint(name);
            refuses_key(file, "transformers_weights", "other.safetensors");
            refuses_key(file, "configuration_files", json::array({"config.4.0.0.json"}));
            if (file.config.contains("hidden_size")) refuses_key(file, "per_layer_config", json{{"0", json::object()}});
        }
    }
    // transformers' own names of sizes win over a family's.
    const std::vector<std::tuple<const char*, const char*, int>> aliases{{"gpt2", "num_attention_heads", 9},
                                                                         {"gpt2", "hidden_size", 9},
                                                                         {"gpt2", "num_hidden_layers", 9},
                                                                         {"gpt2", "max_position_embeddings", 9},
                                                                         {"gptj", "num_attention_heads", 9},
                                                                         {"t5", "num_attention_heads", 9},
                                                                         {"t5", "head_dim", 9},
                                                                         {"bart", "hidden_size", 9},
                                                                         {"marian", "num_hidden_layers", 9},
                                                                         {"umt5", "num_hidden_layers", 9}};
    for (const auto& [name, key, value] : aliases) refuses_key(test::golden_checkpoint(name), key, value);
    test::TinyCheckpoint same = test::golden_checkpoint("gpt2");
    same.config["num_attention_heads"] = same.config.at("n_head");
    CHECK_NOTHROW(same.build());

    for (const char* name : {"t5", "bart", "marian", "umt5"})
        refuses_key(test::golden_checkpoint(name), "is_causal", false);
    refuses_key(test::golden_checkpoint("native-standard"), "is_causal", false);
    test::TinyCheckpoint bloom = test::golden_checkpoint("bloom");
    bloom.config["slow_but_exact"] = true;
    CHECK_NOTHROW(bloom.build());  // alone it changes nothing
    bloom.config["pretraining_tp"] = 2;
    refuses_key(bloom, "slow_but_exact", true);
}

TEST_CASE("What the files of ELECTRA to ESM leave out", "[model][families]") {
    CHECK(read(least("electra")).embedding_size == 128);
    CHECK(read(with(least("electra"), "embedding_size", 384)).embedding_size == 0);
    CHECK(read(least("electra")).norm_epsilon == 1e-12);
    CHECK(read(least("electra")).head_activation == model::Activation::gelu);
    CHECK(read(least("mpnet")).max_positions == 510);
    CHECK(json::parse(read(least("mpnet")).to_json()).at("bucket_rows") == 32);
    CHECK(read(least("eurobert")).max_positions == 8192);
    CHECK(read(least("eurobert")).norm_epsilon == 1e-5);
    CHECK(read(least("eurobert")).rope.theta == 10000);
    CHECK_FALSE(read(least("eurobert")).tied_head);
    const ModelConfig nomic = read(json::object({{"model_type", "nomic_bert"}}));
    CHECK(nomic.vocabulary == 30528);
    CHECK(nomic.hidden == 768);
    CHECK(nomic.feed_forward == 3072);
    CHECK(nomic.token_types == 2);
    CHECK(nomic.rope.theta == 1000);
    CHECK(nomic.tied_head);
    refuses(least("esm"), ErrorCode::mismatch, "pad_token_id");
    const ModelConfig esm = read(with(least("esm"), "pad_token_id", 1));
    CHECK(esm.positions == model::PositionKind::learned);
    CHECK(esm.max_positions == 1024);
    CHECK_FALSE(esm.embedding_norm);
    CHECK(json::parse(esm.to_json()).at("dropped_token") == -1);
    // A rope object says nothing there.
    const json rotary = with(least("esm"), "position_embedding_type", "rotary");
    CHECK(read(rotary).max_positions == 1026);
    CHECK(read(with(rotary, "rope_parameters", {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 5.0}}))
              .rope.theta == 10000);
}
