// SPDX-License-Identifier: GPL-3.0-or-later
// What the configurations of decoders mean where they leave something out, say null, or ask for what is not built.
#include "tests/catch_with_torch.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/model/recipe.h"
#include "tests/core/base/error_matcher.h"

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
    for (const char* type : {"mistral", "gemma2", "phi", "olmo2"}) {
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
    const json gemma2 = json::parse(read(least("gemma2")).to_json());
    CHECK(gemma2.at("norm_gain_offset") == 1.0);
    CHECK(gemma2.at("embedding_scale") == Approx(std::sqrt(24.0 * 16.0)));
}

TEST_CASE("The family that HACKING.md shows is the one that is compiled", "[model][families]") {
    const auto text_of = [](const std::string& path) {
        std::ifstream file(std::string(HEADSCOPE_SOURCE_DIR) + "/" + path);
        std::ostringstream text;
        text << file.rdbuf();
        return text.str();
    };
    const std::string guide = text_of("HACKING.md"), recipe = text_of("core/model/families/qwen3.cpp");
    REQUIRE_FALSE(recipe.empty());
    CHECK(guide.find("```cpp\n" + recipe + "```") != std::string::npos);
    CHECK(text_of("core/model/families/list.inc").find("\nHEADSCOPE_FAMILY(qwen3, kQwen3)\n") != std::string::npos);
    CHECK(guide.find("    HEADSCOPE_FAMILY(qwen3, kQwen3)\n") != std::string::npos);
}
