// SPDX-License-Identifier: GPL-3.0-or-later
// Qwen2, Qwen3, their mixtures of experts, Seed-OSS, OLMo 2, OLMoE and EXAONE 4: Llama's names, rows as transformers
// has them.
#include "core/checkpoint/gguf/architectures/architecture.h"
#include "core/checkpoint/gguf/architectures/decoder_parts.h"

namespace headscope::checkpoint::gguf {
namespace {

DecoderSizes read_qwen(ModelBuilder& build, const char* model_type, const char* class_name) {
    const DecoderSizes sizes = read_decoder(build, model_type, class_name);
    read_rms_norm(build);
    read_whole_rope(build, sizes.head_size);
    return sizes;
}

/// A window of every layer, where the file has one.
void read_qwen_window(ModelBuilder& build) {
    if (read_window(build, [](std::int64_t) { return true; })) build.config()["use_sliding_window"] = true;
}

void name_qwen_norms(ModelBuilder& build, std::int64_t layer, const char* second = "ffn_norm") {
    build.module(block(layer) + "attn_norm", layer_stem(layer) + "input_layernorm");
    build.module(block(layer) + second, layer_stem(layer) + "post_attention_layernorm");
}

/// Norms behind each part.
void name_update_norms(ModelBuilder& build, std::int64_t layer) {
    build.module(block(layer) + "post_attention_norm", layer_stem(layer) + "post_attention_layernorm");
    build.module(block(layer) + "post_ffw_norm", layer_stem(layer) + "post_feedforward_layernorm");
}

/// Layers without a router are plain.
void read_qwen_experts(ModelBuilder& build, bool normed) {
    read_experts(build, "num_experts");
    if (build.has("expert_feed_forward_length"))
        build.config()["moe_intermediate_size"] = build.size("expert_feed_forward_length");
    build.config()["norm_topk_prob"] = build.flag("expert_weights_norm", normed);
    nlohmann::json plain = nlohmann::json::array();
    for (std::int64_t layer = 0; layer < build.layers(); ++layer)
        if (!has_experts(build, layer)) plain.push_back(layer);
    build.config()["mlp_only_layers"] = plain;
    build.config()["decoder_sparse_step"] = 1;
}

void name_qwen_feed_forward(ModelBuilder& build, std::int64_t layer) {
    if (has_experts(build, layer))
        name_experts(build, layer, "mlp.gate", "mlp.experts.");
    else
        name_feed_forward(build, layer);
}

}  // namespace

void build_qwen2(ModelBuilder& build) {
    const DecoderSizes sizes = read_qwen(build, "qwen2", "Qwen2ForCausalLM");
    read_qwen_window(build);
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_qwen_norms(build, layer);
        name_attention(build, sizes, layer);
        name_feed_forward(build, layer);
    }
}

void build_qwen2_experts(ModelBuilder& build) {
    const DecoderSizes sizes = read_qwen(build, "qwen2_moe", "Qwen2MoeForCausalLM");
    read_qwen_experts(build, false);
    build.config()["qkv_bias"] = build.has_in_layers("attn_q.bias");
    build.config()["shared_expert_intermediate_size"] =
        build.size("expert_shared_feed_forward_length", build.size("feed_forward_length", 0));
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_qwen_norms(build, layer);
        name_attention(build, sizes, layer);
        name_qwen_feed_forward(build, layer);
        name_shared_expert(build, layer);
    }
}

void build_qwen3(ModelBuilder& build) {
    const DecoderSizes sizes = read_qwen(build, "qwen3", "Qwen3ForCausalLM");
    read_qwen_window(build);
    build.config()["attention_bias"] = build.has_in_layers("attn_q.bias");
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_qwen_norms(build, layer);
        name_attention(build, sizes, layer);
        name_head_norms(build, layer);
        name_feed_forward(build, layer);
    }
}

void build_qwen3_experts(ModelBuilder& build) {
    const DecoderSizes sizes = read_qwen(build, "qwen3_moe", "Qwen3MoeForCausalLM");
    read_qwen_experts(build, true);
    build.config()["attention_bias"] = build.has_in_layers("attn_q.bias");
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_qwen_norms(build, layer);
        name_attention(build, sizes, layer);
        name_head_norms(build, layer);
        name_qwen_feed_forward(build, layer);
    }
}

void build_seed_oss(ModelBuilder& build) {
    const DecoderSizes sizes = read_qwen(build, "seed_oss", "SeedOssForCausalLM");
    build.config()["attention_bias"] = build.has_in_layers("attn_q.bias");
    build.config()["attention_out_bias"] = build.has_in_layers("attn_output.bias");
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_qwen_norms(build, layer, "post_attention_norm");
        name_attention(build, sizes, layer);
        name_feed_forward(build, layer);
    }
}

void build_olmo2(ModelBuilder& build) {
    const DecoderSizes sizes = read_qwen(build, "olmo2", "Olmo2ForCausalLM");
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_update_norms(build, layer);
        name_attention(build, sizes, layer);
        name_head_norms(build, layer);
        name_feed_forward(build, layer);
    }
}

void build_exaone4(ModelBuilder& build) {
    const DecoderSizes sizes = read_qwen(build, "exaone4", "Exaone4ForCausalLM");
    read_window(build, [](std::int64_t layer) { return (layer + 1) % 4 != 0; });
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_update_norms(build, layer);
        name_attention(build, sizes, layer);
        name_head_norms(build, layer);
        name_feed_forward(build, layer);
    }
}

void build_olmoe(ModelBuilder& build) {
    const DecoderSizes sizes = read_qwen(build, "olmoe", "OlmoeForCausalLM");
    read_experts(build, "num_experts");
    build.config()["norm_topk_prob"] = build.flag("expert_weights_norm", false);
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_qwen_norms(build, layer);
        name_attention(build, sizes, layer);
        name_head_norms(build, layer);
        name_experts(build, layer, "mlp.gate", "mlp.experts.");
    }
}

}  // namespace headscope::checkpoint::gguf
