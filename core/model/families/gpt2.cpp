// SPDX-License-Identifier: GPL-3.0-or-later
// GPT-2 (Radford et al. 2019): learned positions, pre-norm, one fused and transposed matrix for query, key and value.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

SizeKeys keys() {
    SizeKeys keys;
    keys.hidden = "n_embd";
    keys.layers = "n_layer";
    keys.heads = "n_head";
    keys.feed_forward = "n_inner";
    keys.positions = "n_positions";
    return keys;
}

ModelConfig read(const ConfigReader& reader) {
    require_false(reader, "add_cross_attention");
    ModelConfig config;
    read_sizes(config, reader, keys(), 4 * reader.size(keys().hidden));
    refuse_groups(config, reader, keys());
    config.max_positions = reader.size(keys().positions, 1024);
    config.positions = PositionKind::learned;
    config.positions_are_a_table = true;
    config.norm = NormKind::layer;
    config.norm_epsilon = reader.positive("layer_norm_epsilon", 1e-5);
    config.activation = read_activation(reader, "activation_function", "gelu_new");
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = true;
    config.attention_scale = reader.boolean("scale_attn_weights", true) ? 0.0 : 1.0;
    config.scale_by_inverse_layer = reader.boolean("scale_attn_by_inverse_layer_idx", false);
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    read_score_head(config, reader);
    return config;
}

}  // namespace

TensorNames gpt2_names(const ModelConfig& config) {
    TensorNames names;
    names.keys = keys();
    names.prefixes = {"transformer.", ""};
    names.token_embedding = "wte";
    names.position_embedding = "wpe";
    names.layer = "h.{}.";
    names.in_layer.input_norm = "ln_1";
    names.in_layer.query_key_value = "attn.c_attn";
    names.in_layer.output = "attn.c_proj";
    names.in_layer.feed_forward_norm = "ln_2";
    names.in_layer.up = "mlp.c_fc";
    names.in_layer.down = "mlp.c_proj";
    names.final_norm = "ln_f";
    names.transposed = true;
    names.head = "lm_head";
    names.buffers = {".attn.bias", ".attn.masked_bias"};
    name_score_head(names, config);
    return names;
}

const Family kGpt2{"gpt2", {"gpt2"}, "GPT-2: learned positions, layer norms, plain feed-forward", read, gpt2_names};

}  // namespace headscope::model
