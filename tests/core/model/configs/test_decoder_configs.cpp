// SPDX-License-Identifier: GPL-3.0-or-later
// Configurations of decoders that leave a key out, have null there, or need what is not built.
#include "tests/catch_with_torch.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/model/config.h"
#include "tests/core/model/configs/decoder_config.h"
#include "tests/core/model/configs/family_config.h"

using namespace headscope;
using namespace headscope::test::decoders;
using model::ModelConfig;
using nlohmann::json;
using test::read;
using Windows = std::vector<std::int64_t>;

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
