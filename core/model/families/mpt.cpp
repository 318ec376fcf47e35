// SPDX-License-Identifier: GPL-3.0-or-later
// MPT (MosaicML, 2023): ALiBi, layer norms without biases, query, key and value in one matrix and perhaps cut.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

SizeKeys keys() {
    SizeKeys keys;
    keys.hidden = "d_model";
    keys.layers = "n_layers";
    keys.heads = "n_heads";
    keys.feed_forward = "4 * d_model";
    keys.positions = "max_seq_len";
    return keys;
}

/// attn_config. alibi_bias_max is not read there: transformers' slopes end at 2^-8 whatever it says.
void read_attention(ModelConfig& config, const ConfigReader& reader) {
    if (reader.text("attn_type", "multihead_attention") != "multihead_attention")
        reader.unsupported("attn_type", "multihead_attention");
    if (!reader.boolean("alibi", true)) reader.unsupported("alibi", "true or absent");
    require_false(reader, "prefix_lm");
    require_false(reader, "qk_ln");
    if (reader.number("clip_qkv", 0) != 0) config.query_key_value_clip = reader.positive("clip_qkv", 1);
    if (reader.has("softmax_scale")) config.attention_scale = reader.positive("softmax_scale", 1);
}

ModelConfig read(const ConfigReader& reader) {
    SizeKeys sizes = keys();
    sizes.hidden = present_key(reader, {"hidden_size", "d_model"});
    sizes.layers = present_key(reader, {"num_hidden_layers", "n_layers"});
    sizes.heads = present_key(reader, {"num_attention_heads", "n_heads"});
    ModelConfig config;
    read_sizes(config, reader, sizes, 4 * reader.size(sizes.hidden));
    refuse_groups(config, reader, sizes);
    if (reader.size("expansion_ratio", 4) != 4) reader.unsupported("expansion_ratio", "4");
    if (!reader.boolean("no_bias", true)) reader.unsupported("no_bias", "true or absent");
    if (reader.has("logit_scale")) reader.unsupported("logit_scale", "none");
    const std::string norm = reader.text("norm_type", "layernorm");
    if (norm != "layernorm" && norm != "low_precision_layernorm")
        reader.unsupported("norm_type", "layernorm or low_precision_layernorm");
    config.max_positions = reader.size(sizes.positions, 2048);
    config.positions = PositionKind::alibi;
    if (const auto attention = reader.object("attn_config")) read_attention(config, *attention);
    config.norm_bias = false;
    config.norm_epsilon = reader.positive("layer_norm_epsilon", 1e-5);
    config.activation = Activation::gelu;
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    return config;
}

TensorNames names(const ModelConfig&) {
    TensorNames names;
    names.keys = keys();
    names.prefixes = {"transformer.", ""};
    names.token_embedding = "wte";
    names.layer = "blocks.{}.";
    names.in_layer.input_norm = "norm_1";
    names.in_layer.query_key_value = "attn.Wqkv";
    names.in_layer.output = "attn.out_proj";
    names.in_layer.feed_forward_norm = "norm_2";
    names.in_layer.up = "ffn.up_proj";
    names.in_layer.down = "ffn.down_proj";
    names.final_norm = "norm_f";
    names.head = "lm_head";
    return names;
}

}  // namespace

const Family kMpt{"mpt", {"mpt"}, "MPT: ALiBi, layer norms without biases, cut queries, keys and values", read, names};

}  // namespace headscope::model
