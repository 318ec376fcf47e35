// SPDX-License-Identifier: GPL-3.0-or-later
// ModernBERT (Warner et al., arXiv 2412.13663): an encoder, pre-norm, rotary positions, gated feed-forward; two of
// three layers see a window to both sides and turn by frequencies of their own.
#include <optional>

#include "core/model/families/families.h"

namespace headscope::model {
namespace {

RopeConfig read_rope_of(const ConfigReader& reader, const ModelConfig& config, const std::string& layer_type,
                        const std::string& theta_key, double theta) {
    if (reader.is_null(theta_key)) reader.refuse(theta_key, "a number above 0");
    RopeDefaults defaults;
    defaults.layer_type = layer_type;
    defaults.theta_key = theta_key;
    defaults.theta = theta;
    RopeConfig rope = read_rope(reader, config.max_positions, config.head_size, defaults);
    if (rope.type == "default") rope.partial = 1.0;  // the whole head, whatever partial_rotary_factor says
    return rope;
}

/// Classes of texts and of tokens come out of the same transform as words: dense, activation, norm.
void read_classes(ModelConfig& config, const ConfigReader& reader) {
    const bool bias = config.head_transform_bias;
    const std::optional<Activation> activation = config.head_activation;
    read_class_head(config, reader, *activation);
    config.head_transform = config.head_transform_norm = true;
    config.head_transform_bias = bias;
    read_text_pooling(config, reader, "cls", {"cls", "mean"}, "cls");
}

ModelConfig read(const ConfigReader& reader) {
    const SizeKeys keys;
    ModelConfig config;
    read_sizes(config, reader, keys);
    refuse_groups(config, reader, keys);
    config.max_positions = reader.size(keys.positions, 8192);
    config.positions = PositionKind::rotary;
    // i and j see each other up to half of local_attention apart.
    const std::int64_t half =
        reader.has("sliding_window") ? reader.count("sliding_window", 0) : reader.count("local_attention", 128) / 2;
    config.windows =
        read_windows_between(reader, config.layers, half + 1, reader.size("global_attn_every_n_layers", 3));
    config.rope = read_rope_of(reader, config, "full_attention", "global_rope_theta", 160000.0);
    config.window_rope = read_rope_of(reader, config, "sliding_attention", "local_rope_theta", 10000.0);
    config.causal = config.first_input_norm = false;
    config.embedding_norm = true;
    config.norm_epsilon = reader.positive("norm_eps", 1e-5);
    config.norm_bias = reader.boolean("norm_bias", false);
    config.activation = read_activation(reader, "hidden_activation", "gelu");
    config.gated_feed_forward = true;
    config.query_key_value_bias = config.output_bias = reader.boolean("attention_bias", false);
    config.feed_forward_bias = reader.boolean("mlp_bias", false);
    config.head_transform = true;
    config.head_transform_bias = reader.boolean("classifier_bias", false);
    config.head_activation = read_activation(reader, "classifier_activation", "gelu");
    config.head_bias = reader.boolean("decoder_bias", true);
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    read_classes(config, reader);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names;
    names.prefixes = {"model.", ""};
    names.token_embedding = "embeddings.tok_embeddings";
    names.embedding_norm = "embeddings.norm";
    names.layer = "layers.{}.";
    names.in_layer.input_norm = "attn_norm";
    names.in_layer.query_key_value = "attn.Wqkv";
    names.in_layer.output = "attn.Wo";
    names.in_layer.feed_forward_norm = "mlp_norm";
    names.in_layer.gate_up = "mlp.Wi";
    names.in_layer.down = "mlp.Wo";
    names.final_norm = "final_norm";
    names.head = "decoder";
    names.head_bias = {"decoder.bias"};
    names.head_transform = "head.dense";
    names.head_transform_norm = "head.norm";
    name_class_head(names, config, names.head_transform);
    names.buffers = {"rotary_emb.inv_freq"};
    return names;
}

}  // namespace

const Family kModernBert{
    "modernbert", {"modernbert"}, "ModernBERT: encoder, rotary positions, windows to both sides", read, names};

}  // namespace headscope::model
