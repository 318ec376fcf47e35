// SPDX-License-Identifier: GPL-3.0-or-later
// Phi-1, 1.5 and 2 (Gunasekar et al., arXiv 2306.11644): attention and feed-forward side by side after one norm, part
// of each head rotated, biases everywhere.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    const SizeKeys keys;
    ModelConfig config;
    read_sizes(config, reader, keys);
    config.max_positions = reader.size(keys.positions, 2048);
    config.positions = PositionKind::rotary;
    RopeDefaults rope;
    rope.partial = 0.5;
    config.rope = read_rope(reader, config.max_positions, config.head_size, rope);
    config.parallel_residual = true;
    config.parallel_norms = false;
    config.norm = NormKind::layer;
    config.norm_epsilon = reader.positive("layer_norm_eps", 1e-5);
    config.query_key_norm = reader.boolean("qk_layernorm", false) ? QueryKeyNorm::each_head : QueryKeyNorm::none;
    config.activation = read_activation(reader, "hidden_act", "gelu_new");
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = config.head_bias = true;
    config.tied_head = reader.boolean("tie_word_embeddings", false);
    return config;
}

TensorNames names(const ModelConfig&) {
    TensorNames names;
    names.prefixes = {"model.", ""};
    names.token_embedding = "embed_tokens";
    names.layer = "layers.{}.";
    names.in_layer.input_norm = "input_layernorm";
    names.in_layer.query = "self_attn.q_proj";
    names.in_layer.key = "self_attn.k_proj";
    names.in_layer.value = "self_attn.v_proj";
    names.in_layer.query_norm = "self_attn.q_layernorm";
    names.in_layer.key_norm = "self_attn.k_layernorm";
    names.in_layer.output = "self_attn.dense";
    names.in_layer.up = "mlp.fc1";
    names.in_layer.down = "mlp.fc2";
    names.final_norm = "final_layernorm";
    names.head = "lm_head";
    names.head_bias = {"lm_head.bias"};
    names.buffers = {"rotary_emb.inv_freq"};
    return names;
}

}  // namespace

const Family kPhi{"phi", {"phi"}, "Phi-1, Phi-1.5, Phi-2: parallel residual after one norm, biases", read, names};

}  // namespace headscope::model
