// SPDX-License-Identifier: GPL-3.0-or-later
// Llama 1 to 3 (Touvron et al., arXiv 2302.13971): rotary positions, RMS norms, gated feed-forward, grouped heads.
#include "core/model/families/families.h"

namespace headscope::model {

ModelConfig read_llama_without_positions(const ConfigReader& reader, std::int64_t default_positions,
                                         const SizeDefaults& sizes) {
    ModelConfig config;
    read_sizes(config, reader, SizeKeys(), sizes);
    read_llama_choices(config, reader, default_positions);
    return config;
}

void read_llama_choices(ModelConfig& config, const ConfigReader& reader, std::int64_t default_positions) {
    config.max_positions = reader.size(SizeKeys().positions, default_positions);
    config.positions = PositionKind::none;
    config.norm = NormKind::rms;
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-6);
    config.activation = read_activation(reader, "hidden_act", "silu");
    config.gated_feed_forward = true;
    config.query_key_value_bias = config.output_bias = reader.boolean("attention_bias", false);
    config.feed_forward_bias = reader.boolean("mlp_bias", false);
    // No part of what is computed: some files have 0 there.
    const double deviation = reader.number("initializer_range", config.initializer_range);
    if (deviation > 0) config.initializer_range = deviation;
    config.tied_head = reader.boolean("tie_word_embeddings", false);
}

ModelConfig read_llama(const ConfigReader& reader, std::int64_t default_positions, const SizeDefaults& sizes,
                       const RopeDefaults& rope) {
    ModelConfig config = read_llama_without_positions(reader, default_positions, sizes);
    config.positions = PositionKind::rotary;
    config.rope = read_rope(reader, config.max_positions, config.head_size, rope);
    // transformers' Llama and its relatives turn the whole head in the default kind, whatever partial_rotary_factor
    // says.
    if (config.rope.type == "default") config.rope.partial = 1.0;
    return config;
}

TensorNames llama_names(const ModelConfig&) {
    TensorNames names;
    names.prefixes = {"model.", ""};
    names.token_embedding = "embed_tokens";
    names.layer = "layers.{}.";
    names.in_layer.input_norm = "input_layernorm";
    names.in_layer.query = "self_attn.q_proj";
    names.in_layer.key = "self_attn.k_proj";
    names.in_layer.value = "self_attn.v_proj";
    names.in_layer.output = "self_attn.o_proj";
    names.in_layer.feed_forward_norm = "post_attention_layernorm";
    names.in_layer.gate = "mlp.gate_proj";
    names.in_layer.up = "mlp.up_proj";
    names.in_layer.down = "mlp.down_proj";
    names.final_norm = "norm";
    names.head = "lm_head";
    names.buffers = {"rotary_emb.inv_freq"};
    return names;
}

namespace {
ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_llama(reader, 2048);
    read_score_head(config, reader);
    return config;
}
}  // namespace

TensorNames llama_or_score_names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    name_score_head(names, config);
    return names;
}

const Family kLlama{
    "llama", {"llama"}, "Llama 1 to 3: rotary positions, RMS norms, gated feed-forward", read, llama_or_score_names};

}  // namespace headscope::model
