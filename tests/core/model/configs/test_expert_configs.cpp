// SPDX-License-Identifier: GPL-3.0-or-later
// Configurations of later decoders, most of them with experts: GLM to Granite's mixtures, DeepSeek, GLM-4.5, Llama 4.
#include "tests/catch_with_torch.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
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
