// SPDX-License-Identifier: GPL-3.0-or-later
// Apertus (Swiss AI, arXiv 2509.14233): Llama with norms of each query and key head and a plain feed-forward whose
// activation, xIELU (arXiv 2411.13010), has numbers of its own in each layer.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

/// Rotary settings of a file without rotary parameters, whatever its rope_theta.
RopeConfig published_rope(const ConfigReader& reader) {
    RopeConfig rope;
    rope.type = "llama3";
    rope.theta = 12'000'000.0;
    rope.factor = 8.0;
    rope.original_positions = reader.size("original_max_position_embeddings", 8192);
    return rope;
}

ModelConfig read(const ConfigReader& reader) {
    const SizeKeys keys;
    ModelConfig config;
    read_sizes(config, reader, keys);
    config.max_positions = reader.size(keys.positions, 65536);
    config.positions = PositionKind::rotary;
    RopeDefaults rope;
    rope.theta = 12'000'000.0;
    const bool scaled = reader.has("rope_scaling") && !reader.is_empty_object("rope_scaling");
    config.rope = scaled || reader.has("rope_parameters")
                      ? read_rope(reader, config.max_positions, config.head_size, rope)
                      : published_rope(reader);
    if (config.rope.type == "default") config.rope.partial = 1.0;  // the whole head, as Llama's
    config.norm = NormKind::rms;
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    config.query_key_norm = QueryKeyNorm::each_head;
    config.activation = reader.text("hidden_act", "xielu") == "xielu" ? Activation::xielu
                                                                      : read_activation(reader, "hidden_act", "xielu");
    config.query_key_value_bias = config.output_bias = reader.boolean("attention_bias", false);
    config.tied_head = reader.boolean("tie_word_embeddings", false);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.in_layer.input_norm = "attention_layernorm";
    names.in_layer.query_norm = "self_attn.q_norm";
    names.in_layer.key_norm = "self_attn.k_norm";
    names.in_layer.feed_forward_norm = "feedforward_layernorm";
    names.in_layer.gate.clear();
    names.in_layer.activation = "mlp.act_fn";
    return names;
}

}  // namespace

const Family kApertus{
    "apertus", {"apertus"}, "Apertus: norms of each query and key head, plain feed-forward with xIELU", read, names};

}  // namespace headscope::model
