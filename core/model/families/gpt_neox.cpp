// SPDX-License-Identifier: GPL-3.0-or-later
// GPT-NeoX and Pythia (Black et al., arXiv 2204.06745): attention and feed-forward side by side, part of each head
// rotated, query, key and value head by head in one matrix.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    const SizeKeys keys;
    ModelConfig config;
    read_sizes(config, reader, keys);
    refuse_groups(config, reader, keys);
    config.max_positions = reader.size(keys.positions, 2048);
    config.positions = PositionKind::rotary;
    RopeDefaults rope;
    rope.theta_key = "rotary_emb_base";
    rope.partial_key = "rotary_pct";
    rope.partial = 0.25;
    config.rope = read_rope(reader, config.max_positions, config.head_size, rope);
    config.parallel_residual = reader.boolean("use_parallel_residual", true);
    config.norm = NormKind::layer;
    config.norm_epsilon = reader.positive("layer_norm_eps", 1e-5);
    config.activation = read_activation(reader, "hidden_act", "gelu");
    config.query_key_value_bias = config.output_bias = reader.boolean("attention_bias", true);
    config.feed_forward_bias = true;
    config.tied_head = reader.boolean("tie_word_embeddings", false);
    return config;
}

TensorNames names(const ModelConfig&) {
    TensorNames names;
    names.prefixes = {"gpt_neox.", ""};
    names.token_embedding = "embed_in";
    names.layer = "layers.{}.";
    names.in_layer.input_norm = "input_layernorm";
    names.in_layer.query_key_value = "attention.query_key_value";
    names.in_layer.fused_layout = FusedLayout::by_head;
    names.in_layer.output = "attention.dense";
    names.in_layer.feed_forward_norm = "post_attention_layernorm";
    names.in_layer.up = "mlp.dense_h_to_4h";
    names.in_layer.down = "mlp.dense_4h_to_h";
    names.final_norm = "final_layer_norm";
    names.head = "lm_head";
    names.old_head = "embed_out";
    names.buffers = {".attention.bias", ".attention.masked_bias", "rotary_emb.inv_freq"};
    return names;
}

}  // namespace

const Family kGptNeox{
    "gpt_neox", {"gpt_neox"}, "GPT-NeoX, Pythia: parallel residual, part of each head rotated", read, names};

}  // namespace headscope::model
