// SPDX-License-Identifier: GPL-3.0-or-later
// What the configurations of decoders mean where they leave something out, say null, or ask for what is not built.
#include "tests/catch_with_torch.h"

#include <cmath>
#include <fstream>
#include <sstream>
#include <tuple>

#include <nlohmann/json.hpp>

#include "core/model/load/recipe.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using model::ModelConfig;
using nlohmann::json;
using test::IsError;
using Windows = std::vector<std::int64_t>;

namespace {

ModelConfig read(const json& config) {
    const model::ConfigReader reader(config, "config.json");
    return model::find_family(reader).read(reader);
}

/// Only what every file has.
json least(const std::string& type, std::int64_t heads = 16) {
    if (type == "gptj") {
        return {{"model_type", type}, {"vocab_size", 99}, {"n_embd", 128 * heads}, {"n_layer", 2}, {"n_head", heads}};
    }
    return {{"model_type", type},      {"vocab_size", 99},       {"hidden_size", 24 * heads},
            {"intermediate_size", 77}, {"num_hidden_layers", 2}, {"num_attention_heads", heads}};
}

json with(json config, const std::string& key, const json& value) {
    config[key] = value;
    return config;
}

void refuses(const json& config, ErrorCode code, const std::string& part) {
    CAPTURE(part);
    CHECK_THROWS_MATCHES(read(config), Error, IsError(code, part));
}

}  // namespace

TEST_CASE("Sizes that a file leaves out are the family's own", "[model][families]") {
    CHECK(read(least("mistral")).key_value_heads == 8);
    CHECK(read(least("mistral")).head_size == 24);
    CHECK(read(least("qwen3", 32)).head_size == 128);
    CHECK(read(least("qwen3", 32)).key_value_heads == 32);
    CHECK(read(least("gemma2")).head_size == 256);
    CHECK(read(least("gemma2")).key_value_heads == 4);
    CHECK(read(least("gpt_oss")).head_size == 64);
    CHECK(read(least("gpt_oss")).key_value_heads == 8);
    CHECK(read(least("gpt_oss")).experts == 128);
    CHECK(read(least("gpt_oss")).experts_per_token == 4);
    CHECK(read(with(least("gpt_oss"), "num_experts", 7)).experts == 7);
    CHECK(read(least("phi")).key_value_heads == 16);
    CHECK(read(least("gptj")).feed_forward == 4 * 128 * 16);
    CHECK(read(least("olmo2")).norm_epsilon == 1e-5);
    CHECK(read(least("gemma")).head_size == 256);
    CHECK(read(least("gemma")).key_value_heads == 16);
    CHECK(read(least("smollm3")).key_value_heads == 4);
    CHECK(read(least("starcoder2")).key_value_heads == 2);
    CHECK(read(least("stablelm", 32)).key_value_heads == 32);
    CHECK(read(least("granite")).norm_epsilon == 1e-6);
    CHECK(read(least("granite")).attention_scale == 1);
    CHECK(read(least("olmo")).norm_epsilon == 1e-5);
    CHECK(read(least("phi3")).norm_epsilon == 1e-5);
    // The files with images say what differs from the smallest one.
    const ModelConfig images = read({{"model_type", "gemma3"}, {"text_config", json::object()}});
    CHECK(images.vocabulary == 262208);
    CHECK(images.hidden == 2304);
    CHECK(images.feed_forward == 9216);
    CHECK(images.layers == 26);
    CHECK(images.heads == 8);
    CHECK(images.key_value_heads == 4);
    CHECK(images.head_size == 256);
    for (const char* type : {"mistral", "gemma2", "phi", "olmo2", "smollm3"}) {
        CAPTURE(type);
        CHECK(read(with(least(type), "num_key_value_heads", nullptr)).key_value_heads == 16);
    }
}

TEST_CASE("A null switches off what is on by default", "[model][families]") {
    CHECK(read(least("mistral")).windows == Windows{4096, 4096});
    CHECK(read(with(least("mistral"), "sliding_window", nullptr)).windows.empty());
    CHECK(read(least("gemma2")).windows == Windows{4096, 0});
    CHECK(read(least("gpt_oss")).windows == Windows{128, 0});
    CHECK(read(least("qwen3", 32)).windows.empty());
    CHECK(read(with(least("qwen2"), "use_sliding_window", true)).windows.empty());
    json qwen3 = with(with(least("qwen3", 32), "use_sliding_window", true), "max_window_layers", 1);
    CHECK(read(qwen3).windows == Windows{0, 4096});
    CHECK(read(with(qwen3, "sliding_window", nullptr)).windows.empty());
    CHECK(read(least("gemma2")).soft_cap == 50);
    CHECK(read(with(least("gemma2"), "attn_logit_softcapping", nullptr)).soft_cap == 0);
    CHECK(read(least("gemma2")).final_soft_cap == 30);
    CHECK(read(with(least("gemma2"), "final_logit_softcapping", nullptr)).final_soft_cap == 0);
    CHECK(read(with(least("gemma3_text"), "num_hidden_layers", 7)).windows ==
          Windows{4096, 4096, 4096, 4096, 4096, 0, 4096});
    CHECK(read(with(least("olmo3"), "num_hidden_layers", 5)).windows == Windows{4096, 4096, 4096, 0, 4096});
    for (const char* type : {"phi3", "starcoder2", "smollm3"}) {
        CAPTURE(type);
        CHECK(read(least(type)).windows.empty());
        CHECK(read(with(least(type), "sliding_window", nullptr)).windows.empty());
    }
    CHECK(read(with(least("phi3"), "sliding_window", 7)).windows == Windows{7, 7});
    CHECK(read(with(least("smollm3"), "sliding_window", 7)).windows.empty());
    const json smollm3 = with(with(least("smollm3"), "sliding_window", 7), "no_rope_layers", {0, 1});
    CHECK(read(with(smollm3, "use_sliding_window", true)).windows == Windows{7, 0});
    CHECK(read(with(smollm3, "layer_types", {"full_attention", "sliding_attention"})).windows == Windows{0, 7});
    CHECK(read(with(least("gemma3_text"), "final_logit_softcapping", 7)).final_soft_cap == 7);
    CHECK(read(with(least("gemma3_text"), "attn_logit_softcapping", 7)).soft_cap == 0);
    CHECK(read(with(least("olmo"), "clip_qkv", nullptr)).query_key_value_clip == 0);
    for (const char* type : {"gemma", "gemma3_text", "smollm3", "starcoder2"}) CHECK(read(least(type)).tied_head);
    for (const char* type : {"phi3", "olmo", "olmo3", "granite"}) CHECK_FALSE(read(least(type)).tied_head);
    CHECK_FALSE(read(least("stablelm", 32)).tied_head);
    // In files with images the tie stands next to the towers, and logits have no cap.
    json images = {{"model_type", "gemma3"}, {"text_config", with(least("gemma3_text"), "final_logit_softcapping", 7)}};
    images["text_config"]["tie_word_embeddings"] = false;
    CHECK(read(images).tied_head);
    CHECK(read(images).final_soft_cap == 0);
    CHECK(read(least("gemma2")).tied_head);
    CHECK_FALSE(read(least("olmo2")).tied_head);
}

TEST_CASE("Rotary settings have each family's names and defaults", "[model][families][rope]") {
    const json neox = with(with(least("gpt_neox"), "rotary_emb_base", 77), "rotary_pct", 0.5);
    CHECK(read(least("gpt_neox")).rope.partial == 0.25);
    CHECK(read(neox).rope.theta == 77);
    CHECK(read(neox).rope.partial == 0.5);
    CHECK(read(with(neox, "rope_theta", 5)).rope.theta == 77);
    CHECK(read(with(neox, "rope_parameters", {{"rope_theta", 5}, {"partial_rotary_factor", 1}})).rope.theta == 5);
    CHECK(read(least("phi")).rope.partial == 0.5);
    CHECK(read(with(least("phi"), "partial_rotary_factor", 0.25)).rope.partial == 0.25);
    CHECK(read(least("gptj")).rope.size == 64);
    CHECK(read(least("gptj")).rope.interleaved);
    const model::RopeConfig published = read(least("gpt_oss")).rope;
    CHECK(published.type == "yarn");
    CHECK(published.theta == 150000);
    CHECK(published.factor == 32);
    CHECK(published.original_positions == 4096);
    CHECK_FALSE(published.truncate);
    CHECK(read(with(least("gpt_oss"), "rope_parameters", {{"rope_type", "default"}})).rope.theta == 150000);
    CHECK(read(least("stablelm", 32)).rope.partial == 0.25);
    CHECK(read(least("smollm3")).rope.theta == 2000000);
    CHECK(read(with(least("smollm3"), "num_hidden_layers", 5)).rotary_layers ==
          std::vector<std::int64_t>{1, 1, 1, 0, 1});
    CHECK(read(with(least("smollm3"), "no_rope_layers", {0, 2, 0})).rotary_layers == std::vector<std::int64_t>{0, 1});

    const json linear = {{"rope_type", "linear"}, {"factor", 8}};
    for (const char* type : {"gemma3_text", "olmo3"}) {
        CAPTURE(type);
        const bool gemma = std::string(type) == "gemma3_text";
        const double full = gemma ? 1e6 : 5e5, windowed = gemma ? 1e4 : 5e5;
        CHECK(read(least(type)).rope.theta == full);
        CHECK(read(least(type)).window_rope->theta == windowed);
        // rope_theta and rope_scaling are not for layers with a window.
        const ModelConfig old = read(with(with(least(type), "rope_theta", 77), "rope_scaling", linear));
        CHECK(old.rope.theta == 77);
        CHECK(old.rope.factor == 8);
        CHECK(old.window_rope->theta == windowed);
        CHECK(old.window_rope->type == "default");
        const ModelConfig sets = read(with(least(type), "rope_parameters", {{"full_attention", linear}}));
        CHECK(sets.rope.type == "linear");
        CHECK(sets.window_rope->theta == windowed);
    }
    CHECK(read(with(least("gemma3_text"), "rope_local_base_freq", 5)).window_rope->theta == 5);
    CHECK_FALSE(read(with(least("olmo3"), "sliding_window", nullptr)).window_rope.has_value());
    // With several sets, no set's own truncate is read.
    const json yarn = {{"rope_type", "yarn"}, {"factor", 8}, {"truncate", false}};
    json sets = {{"full_attention", yarn}};
    CHECK(read(with(least("olmo3"), "rope_parameters", sets)).rope.truncate);
    sets["truncate"] = false;
    CHECK_FALSE(read(with(least("olmo3"), "rope_parameters", sets)).rope.truncate);

    json longrope = {{"type", "su"}, {"short_factor", json::array()}, {"long_factor", json::array()}};
    for (int n = 0; n < 12; ++n)
        for (const char* key : {"short_factor", "long_factor"}) longrope[key].push_back(1.0 + n);
    longrope["original_max_position_embeddings"] = 77;
    const json phi3 = with(with(least("phi3"), "rope_scaling", longrope), "max_position_embeddings", 131072);
    CHECK(read(phi3).rope.type == "longrope");
    CHECK(read(phi3).rope.original_positions == 4096);
    CHECK(read(phi3).rope.factor == 32);
    CHECK(read(with(phi3, "original_max_position_embeddings", 8192)).rope.factor == 16);
}

TEST_CASE("What a decoder's configuration asks for and is not built is refused by its key", "[model][families]") {
    refuses(with(least("gemma2"), "use_bidirectional_attention", true), ErrorCode::unsupported,
            "use_bidirectional_attention] expected false");
    refuses(with(least("gemma2"), "attn_logit_softcapping", -1), ErrorCode::mismatch, "attn_logit_softcapping");
    refuses(with(least("mistral"), "layer_types", {"full_attention", "sliding_attention"}), ErrorCode::unsupported,
            "layer_types] expected the same for every layer");
    refuses(with(least("mistral"), "sliding_window", 0), ErrorCode::mismatch,
            "sliding_window] expected a whole number");
    refuses(with(least("qwen3", 32), "layer_types", {"chunked_attention", "full_attention"}), ErrorCode::unsupported,
            "layer_types] expected full_attention and sliding_attention only");
    refuses(with(least("gpt_neox"), "num_key_value_heads", 4), ErrorCode::unsupported, "no groups of heads");
    refuses(with(least("gptj"), "rotary_dim", 5), ErrorCode::mismatch, "rotary_dim] expected an even number");
    refuses(with(least("gptj"), "rotary_dim", 130), ErrorCode::mismatch, "rotary_dim] expected an even number");
    refuses(with(least("gptj"), "rotary_dim", nullptr), ErrorCode::mismatch, "rotary_dim");
    refuses(with(least("gpt_oss"), "num_experts_per_tok", 129), ErrorCode::mismatch, "no more than there are experts");
    refuses(with(least("phi"), "hidden_act", "laplace"), ErrorCode::unsupported, "found \"laplace\"");
    refuses(with(least("gemma"), "use_bidirectional_attention", true), ErrorCode::unsupported,
            "use_bidirectional_attention] expected false");
    refuses({{"model_type", "gemma3"}, {"text_config", {{"use_bidirectional_attention", true}}}},
            ErrorCode::unsupported, "text_config: use_bidirectional_attention] expected false");
    refuses({{"model_type", "gemma3"}}, ErrorCode::mismatch, "text_config] expected an object");
    refuses({{"model_type", "gemma3"}, {"text_config", {{"num_hidden_layers", 0}}}}, ErrorCode::mismatch,
            "text_config: num_hidden_layers");
    refuses(with(least("gemma3_text"), "rope_scaling", {{"type", "linear"}, {"factor", 8}}), ErrorCode::unsupported,
            "rope_scaling: type] expected rope_type");
    refuses(with(least("olmo3"), "rope_parameters", {{"rope_type", "default"}}), ErrorCode::unsupported,
            "a set of rotary parameters for each kind of layer");
    refuses(with(least("phi3"), "rope_scaling", {{"type", "linear"}, {"factor", 2}}), ErrorCode::unsupported,
            "rope_scaling] expected longrope or the default kind");
    refuses(
        with(with(least("starcoder2"), "sliding_window", 7), "layer_types", {"full_attention", "sliding_attention"}),
        ErrorCode::unsupported, "layer_types] expected the same for every layer");
    refuses(with(least("smollm3"), "no_rope_layers", json::array({1})), ErrorCode::mismatch,
            "no_rope_layers] expected a list of at least 2");
    refuses(with(least("smollm3"), "no_rope_layers", json::array()), ErrorCode::mismatch, "no_rope_layers");
    refuses(with(least("olmo"), "clip_qkv", -1), ErrorCode::mismatch, "clip_qkv] expected a number above 0");
    refuses(with(least("granite"), "logits_scaling", 0), ErrorCode::mismatch, "logits_scaling");
    refuses(with(least("stablelm", 32), "head_dim", 25), ErrorCode::mismatch, "head_dim] expected hidden_size / ");
    json norms = with(with(least("stablelm", 4096), "qk_layernorm", true), "num_hidden_layers", 16);
    refuses(norms, ErrorCode::mismatch, "num_attention_heads] expected at most 65536 heads with norms");
    refuses(with(least("llama"), "per_layer_config", {{"0", json::object()}}), ErrorCode::unsupported,
            "per_layer_config] expected none");
}

TEST_CASE("Gemma 3 that sees both ways has half the window on either side", "[model][families]") {
    json config = with(with(least("gemma3_text"), "use_bidirectional_attention", true), "sliding_window", 512);
    config["num_hidden_layers"] = 6;
    CHECK_FALSE(read(config).causal);
    CHECK(read(config).windows == Windows{257, 257, 257, 257, 257, 0});
    config["use_bidirectional_attention"] = nullptr;
    CHECK(read(config).causal);
    CHECK(read(config).windows == Windows{512, 512, 512, 512, 512, 0});
}

TEST_CASE("A stored configuration shows every choice", "[model][families]") {
    ModelConfig config = read(least("gpt_oss"));
    const json gpt_oss = json::parse(config.to_json());
    CHECK(gpt_oss.at("experts") == 128);
    CHECK(gpt_oss.at("experts_per_token") == 4);
    CHECK(gpt_oss.at("expert_limit") == 7.0);
    CHECK(gpt_oss.at("expert_slope") == 1.702);
    CHECK(gpt_oss.at("sink_logits") == true);
    CHECK(json::parse(read(least("gptj")).to_json()).at("rope").at("size") == 64);
    CHECK(json::parse(read(least("gptj")).to_json()).at("rope").at("interleaved") == true);
    CHECK(json::parse(read(least("phi")).to_json()).at("parallel_residual") == true);
    CHECK(json::parse(read(least("qwen3", 32)).to_json()).at("query_key_norm") == "each_head");
    CHECK(json::parse(read(least("olmo2")).to_json()).at("query_key_norm") == "all_heads");
    CHECK(json::parse(read(with(least("stablelm", 32), "qk_layernorm", true)).to_json()).at("query_key_norm") ==
          "own_of_each_head");
    CHECK(json::parse(read(with(least("olmo"), "clip_qkv", 8)).to_json()).at("query_key_value_clip") == 8);
    CHECK(json::parse(read(with(least("granite"), "residual_multiplier", 0.5)).to_json()).at("update_scale") == 0.5);
    CHECK(json::parse(read(least("smollm3")).to_json()).at("rotary_layers") == json({1, 1}));
    CHECK(json::parse(read(least("gemma3_text")).to_json()).at("window_rope").at("theta") == 10000);
    const json gemma2 = json::parse(read(least("gemma2")).to_json());
    CHECK(gemma2.at("norm_gain_offset") == 1.0);
    CHECK(gemma2.at("embedding_scale") == Approx(std::sqrt(24.0 * 16.0)));
}

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

TEST_CASE("Sizes, positions and experts that GLM to Granite's mixtures leave out", "[model][families]") {
    CHECK(read(least("glm")).head_size == 128);
    CHECK(read(least("glm")).key_value_heads == 2);
    CHECK(read(least("glm")).norm_epsilon == 1.5625e-7);
    CHECK(read(least("glm")).rope.partial == 0.5);
    CHECK(read(with(least("glm"), "partial_rotary_factor", nullptr)).rope.partial == 1);
    CHECK(read(least("glm")).query_key_value_bias);
    CHECK_FALSE(read(least("glm")).output_bias);
    CHECK(read(least("cohere")).rope.theta == 500000);
    CHECK(read(least("cohere2")).rope.theta == 10000);
    CHECK(read(least("cohere")).head_scale == 0.0625);
    CHECK(read(least("cohere")).tied_head);
    CHECK(read(with(least("cohere2"), "num_hidden_layers", 5)).windows == Windows{4096, 4096, 4096, 0, 4096});
    CHECK(read(with(least("cohere2"), "num_hidden_layers", 5)).rotary_layers == Windows{1, 1, 1, 0, 1});
    CHECK(read(with(least("exaone4", 32), "num_hidden_layers", 5)).rotary_layers == Windows{1, 1, 1, 0, 1});
    CHECK(read(with(least("exaone4", 32), "sliding_window", nullptr)).rotary_layers.empty());
    CHECK(read(least("exaone4", 32)).key_value_heads == 32);
    CHECK(read(least("nemotron")).activation == model::Activation::relu_squared);
    CHECK(read(least("nemotron")).rope.partial == 0.5);
    CHECK(read(least("ministral")).windows == Windows{4096, 4096});
    CHECK(read(with(least("ministral"), "layer_types", {"full_attention", "sliding_attention"})).windows ==
          Windows{0, 4096});
    CHECK(read(least("seed_oss")).head_size == 128);
    CHECK(read(least("seed_oss")).key_value_heads == 8);
    CHECK(read(least("seed_oss")).query_key_value_bias);

    // Without rotary parameters both ignore rope_theta.
    const ModelConfig apertus = read(with(least("apertus"), "rope_theta", 5));
    CHECK(apertus.rope.type == "llama3");
    CHECK(apertus.rope.theta == 12000000);
    CHECK(apertus.activation == model::Activation::xielu);
    CHECK(read(with(least("apertus"), "rope_parameters", {{"rope_type", "default"}})).rope.theta == 12000000);
    const ModelConfig ministral3 = read(with(least("ministral3"), "rope_theta", 5));
    CHECK(ministral3.rope.type == "yarn");
    CHECK(ministral3.rope.theta == 1000000);
    CHECK(ministral3.query_growth == 0.1);
    CHECK(ministral3.query_growth_step == 16384);
    CHECK(read(with(least("ministral3"), "original_max_position_embeddings", 64)).query_growth_step == 64);
    // The text tower of files with images; a text without a type is a Mistral.
    json images = {{"model_type", "mistral3"}, {"text_config", with(least("mistral"), "sliding_window", nullptr)}};
    CHECK(read(images).tied_head);
    CHECK(read(images).query_growth == 0);
    images["text_config"].erase("model_type");
    CHECK(read(images).head_size == 24);
    images["text_config"]["model_type"] = "ministral3";
    CHECK(read(images).head_size == 128);

    const json falcon = least("falcon");
    CHECK(read(falcon).key_value_heads == 1);
    CHECK(read(falcon).feed_forward == 4 * 24 * 16);
    CHECK(read(with(falcon, "n_embed", 32 * 16)).hidden == 32 * 16);
    CHECK_FALSE(read(falcon).parallel_norms);
    const json groups = with(with(falcon, "new_decoder_architecture", true), "num_kv_heads", 4);
    CHECK(read(groups).key_value_heads == 4);
    CHECK(read(groups).parallel_norms);
    CHECK_FALSE(read(with(groups, "num_ln_in_parallel_attn", 1)).parallel_norms);
    const ModelConfig rw = read(with(with(with(falcon, "alibi", true), "multi_query", false), "parallel_attn", false));
    CHECK(rw.key_value_heads == 16);
    const ModelConfig nulls = read(with(with(falcon, "multi_query", nullptr), "parallel_attn", nullptr));
    CHECK(nulls.key_value_heads == 16);
    CHECK_FALSE(nulls.parallel_residual);
    CHECK(rw.alibi_rounded);
    CHECK(rw.alibi_scale == Approx(2 / std::sqrt(24.0)));

    const json mpt = {{"model_type", "mpt"}, {"vocab_size", 99}, {"d_model", 96}, {"n_layers", 2}, {"n_heads", 4}};
    CHECK(read(mpt).feed_forward == 384);
    CHECK(read(with(mpt, "hidden_size", 48)).hidden == 48);
    CHECK(read(with(mpt, "attn_config", {{"clip_qkv", 6}})).query_key_value_clip == 6);
    CHECK(read(with(mpt, "attn_config", {{"softmax_scale", 0.5}})).attention_scale == 0.5);

    CHECK(read(least("mixtral")).experts == 8);
    CHECK(read(least("mixtral")).experts_per_token == 2);
    CHECK(read(least("mixtral")).rope.theta == 1000000);
    CHECK(read(least("qwen2_moe")).experts == 60);
    CHECK(read(least("qwen2_moe")).shared_expert == 5632);
    CHECK(read(least("qwen2_moe")).expert_feed_forward == 1408);
    CHECK_FALSE(read(least("qwen2_moe")).expert_shares_of_chosen);
    CHECK(read(with(least("qwen2_moe"), "num_experts", 0)).experts == 0);
    const json windows = with(with(least("qwen2_moe"), "use_sliding_window", true), "num_hidden_layers", 4);
    CHECK(read(windows).windows == Windows{4096, 0, 4096, 0});
    CHECK(read(with(windows, "max_window_layers", 2)).windows == Windows{4096, 0, 0, 0});
    CHECK(read(with(with(windows, "mlp_only_layers", {1}), "decoder_sparse_step", 2)).expert_layers ==
          Windows{0, 0, 0, 1});
    // transformers prefers its own of two names.
    CHECK(read(with(with(least("qwen3_moe"), "num_experts", 9), "num_local_experts", 11)).experts == 11);
    CHECK(read(with(with(least("mixtral"), "num_experts", 9), "num_local_experts", 11)).experts == 9);
    CHECK(read(with(with(least("gpt_oss"), "num_experts", 9), "num_local_experts", 11)).experts == 9);
    CHECK(read(least("qwen3_moe")).experts == 128);
    CHECK(read(least("qwen3_moe")).experts_per_token == 8);
    CHECK(read(least("olmoe")).experts == 64);
    CHECK(read(least("granitemoe")).experts == 8);
    CHECK(read(least("granitemoe")).attention_scale == 1);

    refuses(with(least("cohere2"), "sliding_window", nullptr), ErrorCode::mismatch, "sliding_window");
    refuses(with(least("exaone4", 32), "sliding_window_pattern", "LLLG"), ErrorCode::mismatch,
            "sliding_window_pattern");
    refuses(with(falcon, "alibi", true), ErrorCode::unsupported, "alibi] expected false where");
    refuses(with(falcon, "num_ln_in_parallel_attn", 2), ErrorCode::unsupported, "num_ln_in_parallel_attn");
    refuses(with(groups, "parallel_attn", false), ErrorCode::unsupported, "parallel_attn] expected true");
    refuses(with(with(falcon, "multi_query", false), "num_kv_heads", 4), ErrorCode::unsupported, "num_kv_heads");
    refuses(with(falcon, "apply_residual_connection_post_layernorm", true), ErrorCode::unsupported, "post_layernorm");
    for (const auto& [key, value] : std::vector<std::pair<const char*, json>>{
             {"qk_ln", true}, {"prefix_lm", true}, {"alibi", false}, {"attn_type", "multiquery_attention"}}) {
        refuses(with(mpt, "attn_config", {{key, value}}), ErrorCode::unsupported, std::string("attn_config: ") + key);
    }
    refuses(with(mpt, "no_bias", false), ErrorCode::unsupported, "no_bias");
    refuses(with(mpt, "norm_type", "rmsnorm"), ErrorCode::unsupported, "norm_type");
    refuses(with(mpt, "logit_scale", 0.5), ErrorCode::unsupported, "logit_scale");
    refuses(with(mpt, "expansion_ratio", 2), ErrorCode::unsupported, "expansion_ratio");
    refuses(with(least("ministral3"), "rope_parameters", {{"rope_type", "default"}}), ErrorCode::mismatch,
            "llama_4_scaling_beta");
    refuses({{"model_type", "mistral3"}}, ErrorCode::mismatch, "text_config] expected an object");
    refuses({{"model_type", "mistral3"}, {"text_config", least("llama")}}, ErrorCode::unsupported,
            "text_config: model_type");
    refuses(with(least("mixtral"), "num_experts_per_tok", 9), ErrorCode::mismatch, "no more than there are experts");
    refuses(with(least("mixtral"), "num_local_experts", 40000), ErrorCode::mismatch, "at most 65536 experts");
    refuses(with(least("olmoe"), "head_dim", 26), ErrorCode::mismatch, "head_dim] expected hidden_size / ");
    refuses(with(least("qwen3_moe"), "hidden_act", "xielu"), ErrorCode::unsupported, "hidden_act");

    const json stored = json::parse(read(with(least("qwen2_moe"), "mlp_only_layers", {0})).to_json());
    CHECK(stored.at("expert_layers") == json({0, 1}));
    CHECK(stored.at("expert_shares_of_chosen") == false);
    CHECK(stored.at("shared_expert_gated") == true);
    CHECK(json::parse(rw.to_json()).at("alibi_rounded") == true);
    CHECK(json::parse(ministral3.to_json()).at("query_growth_step") == 16384);
    CHECK(json::parse(read(least("apertus")).to_json()).at("activation") == "xielu");
}

TEST_CASE("An empty rope_scaling is none, and a null truncate is false, as to transformers", "[model][families]") {
    json llama = least("llama");
    llama["rope_parameters"] = {{"rope_type", "yarn"}, {"factor", 4.0}, {"rope_theta", 500.0}, {"truncate", nullptr}};
    CHECK_FALSE(read(llama).rope.truncate);
    CHECK(read(with(llama, "rope_scaling", json::object())).rope.type == "yarn");
    llama["rope_parameters"].erase("truncate");
    CHECK(read(llama).rope.truncate);
    const json published = least("gpt_oss");
    CHECK(read(with(published, "rope_scaling", json::object())).rope.type == "yarn");
    CHECK(read(with(published, "original_max_position_embeddings", 64)).rope.original_positions == 64);
    // Empty rope_parameters say the default kind.
    const ModelConfig plain = read(with(published, "rope_parameters", json::object()));
    CHECK(plain.rope.type == "default");
    CHECK(plain.rope.theta == 150000);
    refuses(with(least("ministral3"), "rope_parameters", json::object()), ErrorCode::mismatch, "llama_4_scaling_beta");
}

TEST_CASE("What DeepSeek, GLM-4.5 and Llama 4 leave out, and what they refuse", "[model][families]") {
    const json v2 = with(least("deepseek_v2"), "num_experts_per_tok", 6);
    const json v3 = least("deepseek_v3", 128);
    const ModelConfig two = read(v2), three = read(v3);
    CHECK(two.head_size == 192);
    CHECK(two.value_size == 128);
    CHECK(two.rope.size == 64);
    CHECK(two.rope.interleaved);
    CHECK(two.query_rank == 1536);
    CHECK(two.key_value_rank == 512);
    CHECK(two.key_value_heads == 16);
    CHECK(two.attention_scale == Approx(1 / std::sqrt(192.0)));
    CHECK(two.experts == 64);
    CHECK(two.expert_feed_forward == 1407);
    CHECK(two.shared_expert == 2 * 1407);
    CHECK(two.expert_layers == Windows{1, 1});
    CHECK_FALSE(two.routing.sigmoid);
    CHECK(two.routing.groups == 1);
    CHECK_FALSE(two.expert_shares_of_chosen);
    CHECK_FALSE(read(with(v2, "norm_topk_prob", true)).expert_shares_of_chosen);
    CHECK(read(with(v2, "q_lora_rank", nullptr)).query_rank == 0);
    CHECK(read(with(v2, "head_dim", 5)).rope.size == 64);
    CHECK(read(with(with(v2, "n_routed_experts", 9), "num_experts", 7)).experts == 7);
    const json limited = with(with(with(v2, "topk_method", "group_limited_greedy"), "n_group", 8), "topk_group", 3);
    CHECK(read(limited).routing.groups == 8);
    CHECK(read(limited).routing.best_of_group == 1);

    CHECK(three.key_value_heads == 128);
    CHECK(three.experts == 256);
    CHECK(three.routing.groups == 8);
    CHECK(three.routing.groups_per_token == 4);
    CHECK(three.routing.best_of_group == 2);
    CHECK(three.routing.scale == 2.5);
    CHECK(three.routing.choice_bias);
    CHECK(three.expert_shares_of_chosen);
    CHECK(three.further_layers == 1);
    CHECK(read(with(with(v3, "num_hidden_layers", 5), "first_k_dense_replace", 4)).expert_layers ==
          Windows{0, 0, 0, 0, 1});
    CHECK_FALSE(read(with(v3, "rope_interleave", nullptr)).rope.interleaved);
    CHECK_FALSE(read(with(v3, "norm_topk_prob", nullptr)).expert_shares_of_chosen);
    CHECK(read(with(v3, "num_nextn_predict_layers", 0)).further_layers == 0);
    CHECK(read(with(v3, "model_type", "kimi_k2")).key_value_rank == 512);
    CHECK(read(with(v3, "head_dim", 64)).head_size == 192);
    const json yarn = {{"type", "yarn"}, {"factor", 40.0}, {"mscale", 1.0}, {"mscale_all_dim", 1.0}};
    const double magnitude = 0.1 * std::log(40.0) + 1;
    CHECK(read(with(v3, "rope_scaling", yarn)).attention_scale == Approx(magnitude * magnitude / std::sqrt(192.0)));
    CHECK(read(with(v3, "rope_scaling", with(yarn, "mscale_all_dim", 0))).attention_scale ==
          Approx(1 / std::sqrt(192.0)));

    const ModelConfig glm = read(least("glm4_moe"));
    CHECK(glm.key_value_heads == 8);
    CHECK(glm.norm_epsilon == 1e-5);
    CHECK(glm.rope.partial == 0.5);
    CHECK_FALSE(glm.rope.interleaved);
    CHECK(glm.query_key_norm == model::QueryKeyNorm::none);
    CHECK(glm.experts == 128);
    CHECK(glm.expert_feed_forward == 1408);
    CHECK(glm.expert_layers == Windows{0, 1});
    CHECK(glm.routing.groups == 1);
    CHECK(glm.routing.sigmoid);
    CHECK(glm.further_layers == 1);
    CHECK(read(with(least("glm4_moe"), "partial_rotary_factor", nullptr)).rope.partial == 1);
    CHECK(read(with(least("glm4_moe"), "use_qk_norm", true)).query_key_norm == model::QueryKeyNorm::each_head);

    const json text = with(least("llama4_text"), "num_hidden_layers", 5);
    const ModelConfig scout = read(text);
    CHECK(scout.head_size == 128);
    CHECK(scout.rope.theta == 500000);
    CHECK(scout.rotary_layers == Windows{1, 1, 1, 0, 1});
    CHECK(scout.chunks == Windows{8192, 8192, 8192, 0, 8192});
    CHECK(scout.query_key_norm == model::QueryKeyNorm::rotated_head);
    CHECK(scout.query_growth == 0.1);
    CHECK(scout.query_growth_step == 8192);
    CHECK(scout.query_growth_unrotated);
    CHECK(scout.experts == 16);
    CHECK(scout.experts_per_token == 1);
    CHECK(scout.expert_feed_forward == 77);
    CHECK(scout.shared_expert == 77);
    CHECK(scout.feed_forward == 16384);
    CHECK(scout.expert_layers == Windows{1, 1, 1, 1, 1});
    CHECK(read(with(text, "interleave_moe_layer_step", 2)).expert_layers == Windows{0, 1, 0, 1, 0});
    CHECK(read(with(text, "moe_layers", {0, 4})).expert_layers == Windows{1, 0, 0, 0, 1});
    CHECK(read(with(text, "no_rope_layers", json::array())).rotary_layers == Windows{1, 1, 1, 0, 1});
    CHECK(read(with(text, "no_rope_layers", {0, 1, 1, 1, 1})).chunks == Windows{0, 8192, 8192, 8192, 8192});
    CHECK(read(with(text, "use_qk_norm", false)).query_key_norm == model::QueryKeyNorm::none);
    CHECK(read(with(text, "attn_temperature_tuning", false)).query_growth == 0);
    // The text tower of files with images, with Scout's sizes.
    json images = {{"model_type", "llama4"}, {"text_config", json::object()}};
    CHECK(read(images).hidden == 5120);
    CHECK(read(images).layers == 48);

    refuses(least("deepseek_v2"), ErrorCode::mismatch, "num_experts_per_tok] expected a whole number");
    refuses(with(v2, "topk_method", "noaux_tc"), ErrorCode::unsupported, "topk_method] expected greedy or");
    refuses(with(v2, "topk_method", nullptr), ErrorCode::unsupported, "topk_method");
    refuses(with(v2, "topk_method", "group_limited_greedy"), ErrorCode::mismatch, "n_group] expected a whole number");
    refuses(with(limited, "n_group", 7), ErrorCode::mismatch, "n_group] expected a divisor of the 64 experts");
    refuses(with(limited, "topk_group", 9), ErrorCode::mismatch, "topk_group] expected no more than");
    refuses(with(with(limited, "n_group", 64), "topk_group", 5), ErrorCode::mismatch, "num_experts_per_tok");
    refuses(with(v2, "num_key_value_heads", 4), ErrorCode::unsupported, "num_key_value_heads] expected as many as");
    refuses(with(v2, "rope_scaling", {{"type", "linear"}, {"factor", 2.0}, {"partial_rotary_factor", 0.5}}),
            ErrorCode::unsupported, "partial_rotary_factor] expected 1");
    refuses(with(v2, "v_head_dim", 1 << 30), ErrorCode::mismatch, "v_head_dim] expected heads of at most");
    refuses(with(v2, "n_shared_experts", 1 << 30), ErrorCode::mismatch, "n_shared_experts] expected at most");
    refuses(with(v3, "head_dim", 128), ErrorCode::unsupported, "head_dim] expected 64, what qk_rope_head_dim is");
    refuses(with(v3, "topk_method", "greedy"), ErrorCode::unsupported, "topk_method] expected noaux_tc");
    CHECK(read(with(v2, "scoring_func", "softmax")).experts == 64);
    CHECK(read(with(v3, "scoring_func", "sigmoid")).experts == 256);
    refuses(with(v2, "scoring_func", "sigmoid"), ErrorCode::unsupported, "scoring_func] expected softmax");
    refuses(with(v3, "scoring_func", "softmax"), ErrorCode::unsupported, "scoring_func] expected sigmoid");
    refuses(with(v2, "moe_layer_freq", 2), ErrorCode::unsupported, "moe_layer_freq] expected 1");
    refuses(with(v3, "moe_layer_freq", 2), ErrorCode::unsupported, "moe_layer_freq] expected 1");
    refuses(with(v3, "n_group", 256), ErrorCode::mismatch, "2 or more in a group");
    refuses(with(v3, "rope_scaling", {{"type", "yarn"}, {"mscale_all_dim", 1.0}}), ErrorCode::mismatch,
            "factor] expected a number beside mscale_all_dim");
    refuses(with(text, "attention_chunk_size", nullptr), ErrorCode::mismatch, "attention_chunk_size");
    refuses(with(text, "is_causal", false), ErrorCode::unsupported, "is_causal] expected true");
    refuses(with(text, "layer_types", {"sliding_attention"}), ErrorCode::unsupported, "layer_types");
    refuses(with(text, "layer_types", {"full_attention"}), ErrorCode::mismatch, "layer_types] expected a list of 5");
    refuses(with(text, "no_rope_layers", {1}), ErrorCode::mismatch, "no_rope_layers");
    refuses({{"model_type", "llama4"}}, ErrorCode::mismatch, "text_config] expected an object");

    const json stored = json::parse(three.to_json());
    CHECK(stored.at("key_value_rank") == 512);
    CHECK(stored.at("value_size") == 128);
    CHECK(stored.at("expert_routing").at("groups") == 8);
    CHECK(json::parse(scout.to_json()).at("chunks").size() == 5);
    CHECK(json::parse(scout.to_json()).at("query_key_norm") == "rotated_head");
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
