// SPDX-License-Identifier: GPL-3.0-or-later
// Llama and others whose files order query and key rows as pairs: Mistral, Mixtral, Granite, SmolLM3, OLMo.
#include <cmath>

#include "core/checkpoint/gguf/architectures/architecture.h"
#include "core/checkpoint/gguf/architectures/decoder_parts.h"

namespace headscope::checkpoint::gguf {
namespace {

void name_llama_norms(ModelBuilder& build, std::int64_t layer) {
    build.module(block(layer) + "attn_norm", layer_stem(layer) + "input_layernorm");
    build.module(block(layer) + "ffn_norm", layer_stem(layer) + "post_attention_layernorm");
}

void read_biases(ModelBuilder& build) {
    build.config()["attention_bias"] = build.has_in_layers("attn_q.bias") || build.has_in_layers("attn_output.bias");
    build.config()["mlp_bias"] = build.has_in_layers("ffn_down.bias");
}

void name_paired_attention(ModelBuilder& build, const DecoderSizes& sizes, std::int64_t layer) {
    name_attention(build, sizes, layer, pairs_to_halves(sizes.heads, sizes.head_size),
                   pairs_to_halves(sizes.key_value_heads, sizes.head_size));
}

/// Granite's norms, rotary positions and scales. To llama.cpp a scale of 0 is as none, and scores without one are
/// divided by the root of the head's size, where transformers' class multiplies by 1.
void read_granite(ModelBuilder& build, const DecoderSizes& sizes) {
    read_rms_norm(build);
    // In these architectures alone, false means no rotary positions.
    if (!build.flag("rope.scaling.finetuned", true))
        build.unsupported("rope.scaling.finetuned", "expected true, or none: Granite with rotary positions");
    read_whole_rope(build, sizes.head_size);
    const auto scale = [&build](const char* name, const char* ours, double otherwise) {
        const double found = build.number(name, 0);
        build.config()[ours] = found == 0 ? otherwise : found;
    };
    scale("attention.scale", "attention_multiplier", 1 / std::sqrt(static_cast<double>(sizes.head_size)));
    scale("embedding_scale", "embedding_multiplier", 1);
    scale("residual_scale", "residual_multiplier", 1);
    if (build.has("logit_scale")) build.config()["logits_scaling"] = build.number("logit_scale", 1);
}

}  // namespace

void build_llama(ModelBuilder& build) {
    const bool experts = build.size("expert_count", 0) > 0;
    const bool window = build.size("attention.sliding_window", 0) > 0;
    const DecoderSizes sizes = experts ? read_decoder(build, "mixtral", "MixtralForCausalLM")
                                       : (window ? read_decoder(build, "mistral", "MistralForCausalLM")
                                                 : read_decoder(build, "llama", "LlamaForCausalLM"));
    read_rms_norm(build);
    read_whole_rope(build, sizes.head_size);
    if (experts || window) read_window(build, nullptr);
    if (experts) {
        read_experts(build, "num_local_experts");
        if (!build.flag("expert_weights_norm", true)) build.unsupported("expert_weights_norm", "expected true");
    } else if (!window) {
        read_biases(build);
    }
    const std::string layout = build.text("tensor_data_layout", "Meta AI original pth");
    if (layout != "Meta AI original pth") build.unsupported("tensor_data_layout", "expected Meta AI original pth");
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_llama_norms(build, layer);
        name_paired_attention(build, sizes, layer);
        if (experts)
            name_experts(build, layer, "mlp.gate", "mlp.experts.");
        else
            name_feed_forward(build, layer);
    }
}

void build_granite(ModelBuilder& build) {
    const DecoderSizes sizes = read_decoder(build, "granite", "GraniteForCausalLM");
    read_granite(build, sizes);
    read_biases(build);
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_llama_norms(build, layer);
        name_paired_attention(build, sizes, layer);
        name_feed_forward(build, layer);
    }
}

void build_granite_experts(ModelBuilder& build) {
    const DecoderSizes sizes = read_decoder(build, "granitemoe", "GraniteMoeForCausalLM");
    read_granite(build, sizes);
    read_experts(build, "num_local_experts");
    build.config()["attention_bias"] = build.has_in_layers("attn_q.bias");
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_llama_norms(build, layer);
        name_paired_attention(build, sizes, layer);
        name_experts(build, layer, "block_sparse_moe.router", "block_sparse_moe.experts.");
    }
}

void build_smollm3(ModelBuilder& build) {
    const DecoderSizes sizes = read_decoder(build, "smollm3", "SmolLM3ForCausalLM");
    read_rms_norm(build);
    read_whole_rope(build, sizes.head_size);
    build.config()["no_rope_layer_interval"] = 4;  // llama.cpp's, which the file does not say
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_llama_norms(build, layer);
        name_paired_attention(build, sizes, layer);
        name_feed_forward(build, layer);
    }
}

void build_olmo(ModelBuilder& build) {
    constexpr double kEpsilon = 1e-5F;
    const DecoderSizes sizes = read_decoder(build, "olmo", "OlmoForCausalLM");
    read_whole_rope(build, sizes.head_size);
    if (build.number("attention.layer_norm_epsilon", kEpsilon) != kEpsilon)
        build.unsupported("attention.layer_norm_epsilon", "expected 0.00001");
    if (const double clip = build.number("attention.clamp_kqv", 0); clip != 0) build.config()["clip_qkv"] = clip;
    build.module("token_embd", "model.embed_tokens");
    build.module("output", "lm_head");
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_paired_attention(build, sizes, layer);
        name_feed_forward(build, layer);
    }
}

}  // namespace headscope::checkpoint::gguf
