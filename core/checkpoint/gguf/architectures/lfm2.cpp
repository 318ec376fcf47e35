// SPDX-License-Identifier: GPL-3.0-or-later
// LFM2: layers without key heads are short convolutions.
#include <algorithm>

#include "core/checkpoint/gguf/architectures/architecture.h"
#include "core/checkpoint/gguf/architectures/decoder_parts.h"

namespace headscope::checkpoint::gguf {

void build_lfm2(ModelBuilder& build) {
    nlohmann::json& config = build.config();
    const std::vector<std::int64_t> heads = build.each_layer("attention.head_count_kv", 0);
    config["model_type"] = "lfm2";
    config["architectures"] = {"Lfm2ForCausalLM"};
    config["hidden_size"] = build.size("embedding_length");
    config["intermediate_size"] = uniform(build, "feed_forward_length");
    config["block_auto_adjust_ff_dim"] = false;  // the size is the final one
    config["num_hidden_layers"] = build.layers();
    config["num_attention_heads"] = uniform(build, "attention.head_count");
    config["num_key_value_heads"] = *std::max_element(heads.begin(), heads.end());
    config["max_position_embeddings"] = build.size("context_length");
    config["tie_word_embeddings"] = !build.has_tensor("output.weight");
    config["conv_L_cache"] = build.size("shortconv.l_cache");
    config["conv_bias"] = build.has_in_layers("shortconv.in_proj.bias");
    read_rms_norm(build, "norm_eps");
    read_vocabulary(build);
    const std::int64_t hidden = config["hidden_size"], query_heads = config["num_attention_heads"];
    if (hidden % query_heads != 0)
        build.mismatch("attention.head_count", "expected a divisor of embedding_length " + std::to_string(hidden));
    read_whole_rope(build, hidden / query_heads);
    nlohmann::json types = nlohmann::json::array();
    for (const std::int64_t one : heads) {
        if (one != 0 && one != config["num_key_value_heads"])
            build.unsupported("attention.head_count_kv", "expected one number for all layers with attention");
        types.push_back(one == 0 ? "conv" : "full_attention");
    }
    config["layer_types"] = types;
    build.module("token_embd", "model.embed_tokens");
    build.module("token_embd_norm", "model.embedding_norm");
    build.module("output_norm", "model.embedding_norm");  // newer files call it so
    build.module("output", "lm_head");
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        const std::string from = block(layer), to = layer_stem(layer);
        build.module(from + "attn_norm", to + "operator_norm");
        build.module(from + "ffn_norm", to + "ffn_norm");
        for (const char* part : {"q", "k", "v"})
            build.module(from + "attn_" + part, to + "self_attn." + part + "_proj");
        build.module(from + "attn_output", to + "self_attn.out_proj");
        build.module(from + "attn_q_norm", to + "self_attn.q_layernorm");
        build.module(from + "attn_k_norm", to + "self_attn.k_layernorm");
        build.module(from + "ffn_gate", to + "feed_forward.w1");
        build.module(from + "ffn_up", to + "feed_forward.w3");
        build.module(from + "ffn_down", to + "feed_forward.w2");
        build.module(from + "shortconv.in_proj", to + "conv.in_proj");
        build.module(from + "shortconv.out_proj", to + "conv.out_proj");
        build.module(from + "shortconv.conv", to + "conv.conv", [](const PackedPointer& packed) {
            return packed->shape().size() == 2 ? with_shape(packed, {packed->rows(), 1, packed->columns()}) : packed;
        });
    }
}

}  // namespace headscope::checkpoint::gguf
