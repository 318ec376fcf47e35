// SPDX-License-Identifier: GPL-3.0-or-later
// Decoders with layer norms and Llama's names: StarCoder 2, StableLM, Nemotron, Command R.
#include "core/checkpoint/gguf/architectures/architecture.h"
#include "core/checkpoint/gguf/architectures/decoder_parts.h"

namespace headscope::checkpoint::gguf {
namespace {

void name_norms(ModelBuilder& build, std::int64_t layer, const Change& change = nullptr) {
    const std::string from = block(layer), to = layer_stem(layer);
    // Gains alone are stored as 1 + w, where they are.
    for (const auto& [stored, ours] :
         {std::pair("attn_norm", "input_layernorm"), std::pair("ffn_norm", "post_attention_layernorm")}) {
        build.tensor(from + stored + ".weight", to + ours + ".weight", change);
        build.tensor(from + stored + ".bias", to + ours + ".bias");
    }
}

/// Norms of each head's own, [heads, size], as one tensor for each.
void name_own_head_norms(ModelBuilder& build, const std::string& stored, const std::string& name, std::int64_t heads,
                         std::int64_t size) {
    const std::string whole = stored + ".weight";
    if (!build.has_tensor(whole)) return;
    for (std::int64_t head = 0; head < heads; ++head) {
        build.put(name + "." + std::to_string(head) + ".weight",
                  build.changed(whole, build.take(whole), [&](const PackedPointer& packed) {
                      return with_shape(rows_of(with_shape(packed, {heads, size}), head, 1), {size});
                  }));
    }
}

DecoderSizes read_cohere(ModelBuilder& build, const char* model_type, const char* class_name) {
    const DecoderSizes sizes = read_decoder(build, model_type, class_name);
    read_layer_norm(build);
    build.config()["logit_scale"] = build.number("logit_scale", 1);
    build.config()["attention_bias"] = build.has_in_layers("attn_q.bias");
    return sizes;
}

}  // namespace

void build_starcoder2(ModelBuilder& build) {
    const DecoderSizes sizes = read_decoder(build, "starcoder2", "Starcoder2ForCausalLM");
    read_layer_norm(build, "norm_epsilon");
    read_whole_rope(build, sizes.head_size);
    read_window(build, nullptr);
    build.config()["use_bias"] = build.has_in_layers("attn_q.bias");
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_norms(build, layer);
        name_attention(build, sizes, layer);
        build.module(block(layer) + "ffn_up", layer_stem(layer) + "mlp.c_fc");
        build.module(block(layer) + "ffn_down", layer_stem(layer) + "mlp.c_proj");
    }
}

void build_stablelm(ModelBuilder& build) {
    const DecoderSizes sizes = read_decoder(build, "stablelm", "StableLmForCausalLM");
    read_layer_norm(build);
    read_partial_rope(build, sizes.head_size);
    build.config()["use_parallel_residual"] =
        build.flag("use_parallel_residual", !build.has_in_layers("ffn_norm.weight"));
    build.config()["use_qkv_bias"] = build.has_in_layers("attn_q.bias");
    build.config()["qk_layernorm"] = build.has_in_layers("attn_q_norm.weight");
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_norms(build, layer);
        name_attention(build, sizes, layer);
        name_own_head_norms(build, block(layer) + "attn_q_norm", layer_stem(layer) + "self_attn.q_layernorm.norms",
                            sizes.heads, sizes.head_size);
        name_own_head_norms(build, block(layer) + "attn_k_norm", layer_stem(layer) + "self_attn.k_layernorm.norms",
                            sizes.key_value_heads, sizes.head_size);
        name_feed_forward(build, layer);
    }
}

void build_nemotron(ModelBuilder& build) {
    const DecoderSizes sizes = read_decoder(build, "nemotron", "NemotronForCausalLM");
    read_layer_norm(build, "norm_eps");
    build.ignore("attention.layer_norm_rms_epsilon");  // the converter writes the number twice
    read_partial_rope(build, sizes.head_size);
    build.config()["attention_bias"] = build.has_in_layers("attn_q.bias");
    build.config()["mlp_bias"] = build.has_in_layers("ffn_down.bias");
    build.module("token_embd", "model.embed_tokens");
    build.tensor("output_norm.weight", "model.norm.weight", minus_one);
    build.tensor("output_norm.bias", "model.norm.bias");
    build.module("output", "lm_head");
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_norms(build, layer, minus_one);
        name_attention(build, sizes, layer);
        name_feed_forward(build, layer);
    }
}

void build_command_r(ModelBuilder& build) {
    const DecoderSizes sizes = read_cohere(build, "cohere", "CohereForCausalLM");
    read_whole_rope(build, sizes.head_size);
    build.config()["use_qk_norm"] = build.has_in_layers("attn_q_norm.weight");
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_norms(build, layer);
        name_attention(build, sizes, layer);
        name_head_norms(build, layer);
        name_feed_forward(build, layer);
    }
}

void build_cohere2(ModelBuilder& build) {
    const DecoderSizes sizes = read_cohere(build, "cohere2", "Cohere2ForCausalLM");
    read_whole_rope(build, sizes.head_size);
    read_window(build, [](std::int64_t layer) { return (layer + 1) % 4 != 0; });
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_norms(build, layer);
        name_attention(build, sizes, layer);
        name_feed_forward(build, layer);
    }
}

}  // namespace headscope::checkpoint::gguf
