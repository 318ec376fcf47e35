// SPDX-License-Identifier: GPL-3.0-or-later
// Configurations of models with a state in some layers where they leave something out, and refused ones.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/mixers/types/gated_deltanet.h"
#include "core/mixers/types/kimi_delta.h"
#include "core/mixers/types/mamba2.h"
#include "core/model/config.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/configs/family_config.h"

using namespace headscope;
using model::ModelConfig;
using nlohmann::json;
using test::IsError;
using test::read;
using test::with;

TEST_CASE("What the file of a hybrid model leaves out is as in transformers", "[model][families]") {
    const ModelConfig next = read({{"model_type", "qwen3_next"}});
    CHECK(next.layers == 48);
    CHECK(next.hidden == 2048);
    CHECK(next.heads == 16);
    CHECK(next.key_value_heads == 2);
    CHECK(next.head_size == 256);
    CHECK(next.rope.partial == 0.25);
    for (const char* type : {"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"})
        CHECK(read(with(type, "partial_rotary_factor", nullptr)).rope.partial == 1);
    CHECK(next.experts == 512);
    CHECK(next.experts_per_token == 10);
    CHECK(next.shared_expert == 512);
    CHECK(next.expert_shares_of_chosen);
    CHECK(next.attention_gate);
    CHECK(next.norm_gain_offset == 1);
    CHECK(next.mixers.at(2) == "gated_deltanet");
    CHECK(next.mixers.at(3) == "standard");
    const auto heads = [&](const ModelConfig& config, const char* key) {
        return config.mixer_options.get<std::int64_t>(mixers::kGatedDeltaNet, key);
    };
    CHECK(heads(next, "num_heads") == 16);
    CHECK(heads(next, "num_value_heads") == 32);
    CHECK(heads(next, "head_dim") == 128);
    CHECK(read(with("qwen3_next", "full_attention_interval", 2)).mixers.at(1) == "standard");
    const ModelConfig dense = read({{"model_type", "qwen3_5_text"}});
    CHECK(dense.feed_forward == 12288);
    CHECK(dense.experts == 0);
    const ModelConfig images = read({{"model_type", "qwen3_5_moe"}, {"text_config", json::object()}});
    CHECK(images.layers == 40);
    CHECK(images.experts == 256);
    CHECK(images.vocabulary == 248320);
    const ModelConfig olmo = read({{"model_type", "olmo_hybrid"}});
    CHECK(heads(olmo, "num_heads") == 30);
    CHECK(heads(olmo, "head_dim") == 96);
    CHECK(olmo.mixer_options.get<double>(mixers::kGatedDeltaNet, "expand_v") == 2.0);
    CHECK(olmo.positions == model::PositionKind::rotary);
    CHECK(read(with("olmo_hybrid", "rope_theta", nullptr)).positions == model::PositionKind::none);
    CHECK(read(with("olmo_hybrid", "rope_parameters", {{"rope_theta", nullptr}})).positions ==
          model::PositionKind::none);
    CHECK(read(with("olmo_hybrid", "num_hidden_layers", 2)).mixers.back() == "standard");
    const auto of_mamba2 = [](const ModelConfig& config, const char* key) {
        return config.mixer_options.get<std::int64_t>(mixers::kMamba2, key);
    };
    const ModelConfig falcon = read({{"model_type", "falcon_h1"}});
    CHECK(falcon.key_value_heads == 8);
    CHECK(falcon.head_size == 128);
    CHECK(falcon.mixers.at(31) == "attention_mamba2");
    CHECK(of_mamba2(falcon, "num_heads") == 128);
    CHECK(of_mamba2(falcon, "head_dim") == 8);
    CHECK(of_mamba2(falcon, "state_size") == 256);
    CHECK_FALSE(falcon.state_space.normed);
    CHECK(falcon.state_space.norm_first);
    CHECK_FALSE(falcon.state_space.limits_step());
    CHECK_FALSE(read(with("falcon_h1", "mamba_norm_before_gate", nullptr)).state_space.norm_first);
    CHECK(falcon.state_space.taps_bias);
    CHECK_FALSE(read(with("falcon_h1", "mamba_conv_bias", nullptr)).state_space.taps_bias);
    CHECK(of_mamba2(read(with("falcon_h1", "mamba_d_ssm", nullptr)), "head_dim") == 64);
    CHECK(of_mamba2(read(with("falcon_h1", "mamba_d_head", "auto")), "head_dim") == 8);
    const ModelConfig nemotron = read({{"model_type", "nemotron_h"}});
    CHECK(nemotron.mixers == std::vector<std::string>{"mamba2", "none", "standard", "none"});
    CHECK(nemotron.feed_forward_layers == std::vector<std::int64_t>{0, 1, 0, 1});
    CHECK(nemotron.expert_layers == std::vector<std::int64_t>{0, 1, 0, 0});
    CHECK(nemotron.experts == 8);
    CHECK(nemotron.shared_expert == 7688);
    CHECK(nemotron.activation == model::Activation::relu_squared);
    CHECK(nemotron.positions == model::PositionKind::none);
    CHECK(of_mamba2(nemotron, "num_groups") == 8);
    CHECK(nemotron.state_space.least_step == 0.001);
    const ModelConfig published = read(with("nemotron_h", "hybrid_override_pattern", "M-M*E"));
    CHECK(published.layers == 5);
    CHECK(published.mixers.at(3) == "standard");
    CHECK(published.has_experts(4));
    CHECK(read(with("nemotron_h", "layers_block_type", {"mamba", "attention", "mlp"})).experts == 0);
    CHECK(read({{"model_type", "nemotron_h"}, {"layers_block_type", {"mamba", "mlp"}}, {"layer_types", {"moe", "mlp"}}})
              .mixers.front() == "none");
    const ModelConfig jamba = read({{"model_type", "jamba"}});
    CHECK(jamba.mixers.at(4) == "standard");
    CHECK(jamba.mixers.at(5) == "mamba");
    CHECK(jamba.positions == model::PositionKind::none);
    CHECK(jamba.has_experts(1));
    CHECK_FALSE(jamba.has_experts(2));
    CHECK(jamba.experts == 16);
    CHECK(jamba.selective_scan.channels == 8192);
    CHECK(jamba.selective_scan.state_size == 16);
    CHECK(jamba.selective_scan.rank == 256);
    CHECK(read(with("jamba", "num_experts", 1)).experts == 0);
    CHECK(read(with("jamba", "num_experts", 0)).experts == 0);
    CHECK(read({{"model_type", "jamba"}, {"num_experts", 5}, {"num_local_experts", 3}}).experts == 3);
    const ModelConfig lfm2 = read({{"model_type", "lfm2"}});
    CHECK(lfm2.tied_head);
    CHECK(lfm2.rope.theta == 1e6);
    CHECK(lfm2.convolution_taps == 3);
    CHECK_FALSE(lfm2.output_bias);
    CHECK(lfm2.feed_forward == 8192);
    CHECK(lfm2.mixers.at(0) == "standard");
    CHECK(read(with("lfm2", "full_attn_idxs", {1, 3})).mixers.at(2) == "short_convolution");
    CHECK(read(with("lfm2", "block_auto_adjust_ff_dim", false)).feed_forward == 12288);
    CHECK(read(with("lfm2", "block_ff_dim", 3000)).feed_forward == 2048);
    CHECK(read(with("lfm2", "block_ffn_dim_multiplier", 1.01)).feed_forward == 8448);
    CHECK(read(with("lfm2", "block_ffn_dim_multiplier", nullptr)).feed_forward == 8192);
    CHECK_FALSE(read(with("lfm2", "tie_embedding", false)).tied_head);
    const ModelConfig minimax = read({{"model_type", "minimax"}});
    CHECK(minimax.mixers.at(0) == "standard");
    CHECK(minimax.mixers.at(1) == "lightning");
    CHECK(minimax.rope.theta == 1e6);
    CHECK(minimax.windows.empty());
    const ModelConfig kimi = read({{"model_type", "kimi_linear"}});
    CHECK(kimi.positions == model::PositionKind::none);
    CHECK(kimi.head_size == 192);
    CHECK(kimi.query_rank == 0);
    CHECK(kimi.max_positions == 1'048'576);
    CHECK(kimi.mixers.at(0) == "kda");
    CHECK(kimi.mixers.at(4) == "standard");
    CHECK_FALSE(kimi.has_experts(0));
    CHECK(kimi.has_experts(1));
    CHECK(kimi.mixer_options.get<std::int64_t>(mixers::kKimiDelta, "head_dim") == 128);
}

TEST_CASE("What the file of a model with Mamba2 leaves out is as in transformers", "[model][families]") {
    const ModelConfig bamba = read({{"model_type", "bamba"}, {"attn_layer_indices", {9, 18}}});
    CHECK(bamba.vocabulary == 128'000);
    CHECK(bamba.key_value_heads == 8);
    CHECK(bamba.rope.partial == 0.5);
    CHECK(bamba.mixers.at(9) == "standard");
    CHECK(std::count(bamba.mixers.begin(), bamba.mixers.end(), "mamba2") == 30);
    CHECK(bamba.mixer_options.get<std::int64_t>(mixers::kMamba2, "head_dim") == 64);
    CHECK(bamba.mixer_options.get<std::int64_t>(mixers::kMamba2, "state_size") == 256);
    CHECK(read(with("bamba", "num_key_value_heads", nullptr)).key_value_heads == 32);
    CHECK(read(with("bamba", "partial_rotary_factor", 1.0)).rope.partial == 0.5);
    CHECK(read(with("bamba", "rope_parameters", {{"partial_rotary_factor", 0.25}})).rope.partial == 0.25);
    const ModelConfig no_softmax = read(with("bamba", "attn_layer_indices", json::array()));
    CHECK(no_softmax.mixers == std::vector<std::string>(32, "mamba2"));
    const ModelConfig granite = read({{"model_type", "granitemoehybrid"}});
    CHECK(granite.positions == model::PositionKind::none);
    CHECK(granite.experts == 8);
    CHECK(granite.shared_expert == 1024);
    CHECK(granite.mixers == std::vector<std::string>(32, "mamba2"));
    const ModelConfig dense_granite = read(with("granitemoehybrid", "num_local_experts", 0));
    CHECK(dense_granite.experts == 0);
    CHECK(dense_granite.feed_forward == 1024);
    json older(32, "mamba"), other(32, "linear_attention");
    older[5] = other[6] = "attention";
    CHECK(read({{"model_type", "granitemoehybrid"}, {"layer_types", other}}).mixers.at(6) == "standard");
    CHECK(
        read({{"model_type", "granitemoehybrid"}, {"layers_block_type", older}, {"layer_types", other}}).mixers.at(5) ==
        "standard");
}

TEST_CASE("What of a hybrid model is not built, or cannot be, is refused by its key", "[model][families]") {
    const auto refuses = [](const std::string& type, const std::string& key, const json& value, ErrorCode code,
                            const std::string& part = "") {
        CAPTURE(type, key);
        CHECK_THROWS_MATCHES(read(with(type, key, value)), Error, IsError(code, part.empty() ? key : part));
    };
    for (const char* type : {"qwen3_next", "qwen3_5_text", "olmo_hybrid", "minimax", "kimi_linear"}) {
        refuses(type, "hidden_act", "gelu", ErrorCode::unsupported);
        refuses(type, "layer_types", {"full_attention"}, ErrorCode::mismatch);
    }
    for (const char* type : {"bamba", "granitemoehybrid"}) {
        refuses(type, "hidden_act", "gelu", ErrorCode::unsupported);
        refuses(type, "mamba_n_heads", 100, ErrorCode::mismatch, "mamba_expand");
        refuses(type, "mamba_n_heads", 131'072, ErrorCode::mismatch);
        refuses(type, "mamba_expand", std::int64_t{1} << 30, ErrorCode::mismatch);
        refuses(type, "mamba_n_groups", 3, ErrorCode::mismatch);
        refuses(type, "mamba_d_head", 32, ErrorCode::mismatch);
        refuses(type, "mamba_d_head", "any", ErrorCode::mismatch);
        refuses(type, "time_step_limit", {0.1, 0.0}, ErrorCode::mismatch);
    }
    refuses("granitemoehybrid", "layer_types", json(32, "conv"), ErrorCode::unsupported);
    refuses("granitemoehybrid", "layer_types", json::array(), ErrorCode::mismatch);
    refuses("bamba", "attn_layer_indices", "all", ErrorCode::mismatch);
    refuses("granitemoehybrid", "layer_types", {"mamba"}, ErrorCode::mismatch);
    const json windowed(48, "sliding_attention");
    refuses("qwen3_next", "layer_types", windowed, ErrorCode::unsupported);
    refuses("qwen3_next", "linear_num_value_heads", 24, ErrorCode::mismatch);
    refuses("qwen3_next", "linear_conv_kernel_dim", 65, ErrorCode::mismatch);
    refuses("qwen3_5", "text_config", nullptr, ErrorCode::mismatch);
    refuses("falcon_h1", "hidden_act", "gelu", ErrorCode::unsupported);
    refuses("falcon_h1", "mlp_multipliers", {1.0}, ErrorCode::mismatch);
    refuses("falcon_h1", "ssm_multipliers", {1.0, 1.0}, ErrorCode::mismatch);
    refuses("falcon_h1", "key_multiplier", -1.0, ErrorCode::mismatch);
    refuses("falcon_h1", "mamba_d_ssm", 1000, ErrorCode::mismatch);
    refuses("falcon_h1", "mamba_d_head", 9, ErrorCode::mismatch);
    refuses("falcon_h1", "mamba_d_head", "wide", ErrorCode::mismatch);
    refuses("falcon_h1", "mamba_n_groups", 3, ErrorCode::mismatch);
    refuses("falcon_h1", "mamba_d_state", 65'537, ErrorCode::mismatch);
    refuses("falcon_h1", "mamba_d_conv", 65, ErrorCode::mismatch);
    refuses("falcon_h1", "time_step_limit", {0.1}, ErrorCode::mismatch);
    refuses("jamba", "hidden_act", "gelu", ErrorCode::unsupported);
    refuses("jamba", "attn_layer_offset", 8, ErrorCode::mismatch);
    refuses("jamba", "expert_layer_offset", 2, ErrorCode::mismatch);
    refuses("jamba", "mamba_dt_rank", "wide", ErrorCode::mismatch);
    refuses("jamba", "mamba_expand", 64, ErrorCode::mismatch);
    refuses("jamba", "mamba_inner_layernorms", false, ErrorCode::unsupported);
    refuses("nemotron_h", "layers_block_type", {"mamba", "wide"}, ErrorCode::unsupported);
    refuses("nemotron_h", "hybrid_override_pattern", "M?", ErrorCode::unsupported);
    refuses("nemotron_h", "hybrid_override_pattern", "", ErrorCode::mismatch);
    refuses("nemotron_h", "mamba_hidden_act", "gelu", ErrorCode::unsupported);
    refuses("nemotron_h", "moe_latent_size", 64, ErrorCode::unsupported);
    refuses("nemotron_h", "n_groups", 3, ErrorCode::mismatch);
    refuses("nemotron_h", "mamba_n_groups", 3, ErrorCode::mismatch);
    refuses("nemotron_h", "mamba_num_heads", 65'540, ErrorCode::mismatch);
    refuses("nemotron_h", "num_experts_per_tok", 9, ErrorCode::mismatch);
    refuses("lfm2", "layer_types", {"conv"}, ErrorCode::mismatch);
    refuses("lfm2", "layer_types", json(32, "sliding_attention"), ErrorCode::unsupported);
    refuses("lfm2", "conv_L_cache", 65, ErrorCode::mismatch);
    refuses("lfm2", "block_ffn_dim_multiplier", 1e9, ErrorCode::mismatch);
    refuses("olmo_hybrid", "head_dim", 96, ErrorCode::mismatch);
    refuses("olmo_hybrid", "layer_types", json(32, "linear_attention"), ErrorCode::mismatch);
    refuses("kimi_linear", "mla_use_nope", false, ErrorCode::unsupported);
    refuses("kimi_linear", "moe_router_activation_func", "softmax", ErrorCode::unsupported);
    refuses("kimi_linear", "moe_layer_freq", 2, ErrorCode::unsupported);
    refuses("kimi_linear", "num_experts_per_token", 257, ErrorCode::mismatch);
    refuses("kimi_linear", "mlp_layer_types", json(27, "wide"), ErrorCode::unsupported);
    const json some{{"full_attn_layers", {4}}, {"kda_layers", {1, 2, 3}}};
    refuses("kimi_linear", "linear_attn_config", some, ErrorCode::mismatch, "kda_layers");
    const json beyond{{"full_attn_layers", {28}}, {"kda_layers", json::array()}};
    refuses("diffllama", "num_key_value_heads", 1, ErrorCode::mismatch);
    refuses("diffllama", "attention_dropout", 0.1, ErrorCode::unsupported);
    refuses("kimi_linear", "linear_attn_config", beyond, ErrorCode::mismatch, "full_attn_layers");
}
