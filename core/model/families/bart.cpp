// SPDX-License-Identifier: GPL-3.0-or-later
// BART (Lewis et al., arXiv 1910.13461): an encoder and a decoder with cross-attention, post-norm, learned positions
// from row 2 on.
#include "core/model/families/families.h"

#include <cmath>
#include <memory>

namespace headscope::model {
namespace {

SizeKeys keys(const std::string& side) {
    SizeKeys keys;
    keys.hidden = "d_model";
    keys.layers = side + "_layers";
    keys.heads = side + "_attention_heads";
    keys.key_value_heads = side + "_attention_heads";
    keys.head_size = "d_model / " + side + "_attention_heads";
    keys.feed_forward = side + "_ffn_dim";
    return keys;
}

ModelConfig read_side(const ConfigReader& reader, const std::string& side, const SizeDefaults& sizes,
                      const BartDefaults& defaults) {
    ModelConfig config;
    read_sizes(config, reader, keys(side), sizes);
    config.max_positions = reader.size("max_position_embeddings", defaults.positions);
    config.positions = PositionKind::learned;
    config.positions_are_a_table = true;
    config.position_offset = 2;
    config.embedding_norm = true;
    config.embedding_scale =
        reader.boolean("scale_embedding", defaults.scaled) ? std::sqrt(static_cast<double>(config.hidden)) : 1.0;
    config.pre_norm = config.final_norm = false;
    config.norm = NormKind::layer;
    config.activation = read_activation(reader, "activation_function", defaults.activation);
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = true;
    return config;
}

ModelConfig read(const ConfigReader& reader) {
    // Changes of fairseq's relatives of BART, in files older than model_type.
    for (const char* key : {"normalize_before", "add_final_layer_norm", "static_position_embeddings"})
        require_false(reader, key);
    return read_bart(reader, {});
}

TensorNames tower_names(const std::string& tower) {
    TensorNames names;
    names.keys = keys(tower);
    names.prefixes = {"model.", ""};
    names.token_embedding = tower + ".embed_tokens";
    names.shared_embedding = "shared";
    names.position_embedding = tower + ".embed_positions";
    names.embedding_norm = tower + ".layernorm_embedding";
    names.layer = tower + ".layers.{}.";
    names.in_layer.query = "self_attn.q_proj";
    names.in_layer.key = "self_attn.k_proj";
    names.in_layer.value = "self_attn.v_proj";
    names.in_layer.output = "self_attn.out_proj";
    names.in_layer.input_norm = "self_attn_layer_norm";
    names.in_layer.up = "fc1";
    names.in_layer.down = "fc2";
    names.in_layer.feed_forward_norm = "final_layer_norm";
    names.final_norm = tower + ".layer_norm";
    return names;
}

}  // namespace

BartDefaults large_bart(std::int64_t vocabulary, std::int64_t start) {
    SizeDefaults sizes;
    sizes.vocabulary = vocabulary;
    sizes.hidden = 1024;
    sizes.layers = 12;
    sizes.heads = 16;
    sizes.feed_forward = 4096;
    BartDefaults defaults;
    defaults.encoder = defaults.decoder = sizes;
    defaults.start = start;
    return defaults;
}

ModelConfig read_bart(const ConfigReader& reader, const BartDefaults& defaults) {
    ModelConfig encoder = read_side(reader, "encoder", defaults.encoder, defaults);
    encoder.causal = false;
    ModelConfig decoder = read_side(reader, "decoder", defaults.decoder, defaults);
    decoder.encoder = std::make_shared<ModelConfig>(encoder);
    decoder.tied_head = reader.boolean("tie_word_embeddings", true);
    const bool known = reader.has("decoder_start_token_id") || defaults.start < decoder.vocabulary;
    if (known) decoder.decoder_start = reader.count("decoder_start_token_id", defaults.start);
    return decoder;
}

void change_towers(ModelConfig& decoder, const std::function<void(ModelConfig& tower)>& change) {
    ModelConfig encoder = *decoder.encoder;
    change(encoder);
    change(decoder);
    decoder.encoder = std::make_shared<ModelConfig>(encoder);
}

ModelConfig read_pre_norm_bart(const ConfigReader& reader, const BartDefaults& defaults) {
    ModelConfig config = read_bart(reader, defaults);
    change_towers(config, [](ModelConfig& tower) { tower.pre_norm = tower.final_norm = true; });
    return config;
}

TensorNames bart_encoder_names(const ModelConfig&) {
    return tower_names("encoder");
}

TensorNames bart_names(const ModelConfig&) {
    TensorNames names = tower_names("decoder");
    names.in_layer.cross_norm = "encoder_attn_layer_norm";
    names.in_layer.cross_query = "encoder_attn.q_proj";
    names.in_layer.cross_key = "encoder_attn.k_proj";
    names.in_layer.cross_value = "encoder_attn.v_proj";
    names.in_layer.cross_output = "encoder_attn.out_proj";
    names.head = "lm_head";
    names.logits_bias = "final_logits_bias";
    names.buffers = {"encoder.version", "decoder.version"};
    return names;
}

const Family kBart{"bart", {"bart"},   "BART: encoder and decoder, post-norm, learned positions",
                   read,   bart_names, bart_encoder_names};

}  // namespace headscope::model
