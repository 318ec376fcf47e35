// SPDX-License-Identifier: GPL-3.0-or-later
// BLOOM (BigScience, arXiv 2211.05100): ALiBi, a norm after the embedding, query, key and value interleaved by head.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

SizeKeys keys() {
    SizeKeys keys;
    keys.layers = "n_layer";
    keys.heads = "n_head";
    keys.feed_forward = "4 * hidden_size";
    keys.positions = "seq_length";
    return keys;
}

ModelConfig read(const ConfigReader& reader) {
    SizeKeys sizes = keys();
    sizes.hidden = present_key(reader, {"n_embed", "hidden_size"});
    sizes.layers = present_key(reader, {"num_hidden_layers", "n_layer"});
    sizes.heads = present_key(reader, {"num_attention_heads", "n_head"});
    ModelConfig config;
    read_sizes(config, reader, sizes, 4 * reader.size(sizes.hidden));
    refuse_groups(config, reader, sizes);
    config.max_positions = reader.count(sizes.positions, 0);
    config.positions = PositionKind::alibi;
    config.embedding_norm = true;
    config.residual_after_norm = reader.boolean("apply_residual_connection_post_layernorm", false);
    config.norm_epsilon = reader.positive("layer_norm_epsilon", 1e-5);
    config.activation = Activation::gelu_tanh;
    // transformers then adds up slices without their biases.
    if (reader.boolean("slow_but_exact", false) && reader.count("pretraining_tp", 1) > 1)
        reader.unsupported("slow_but_exact", "false beside pretraining_tp above 1");
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = true;
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    return config;
}

TensorNames names(const ModelConfig&) {
    TensorNames names;
    names.keys = keys();
    names.prefixes = {"transformer.", ""};
    names.token_embedding = "word_embeddings";
    names.embedding_norm = "word_embeddings_layernorm";
    names.layer = "h.{}.";
    names.in_layer.input_norm = "input_layernorm";
    names.in_layer.query_key_value = "self_attention.query_key_value";
    names.in_layer.fused_layout = FusedLayout::by_head;
    names.in_layer.output = "self_attention.dense";
    names.in_layer.feed_forward_norm = "post_attention_layernorm";
    names.in_layer.up = "mlp.dense_h_to_4h";
    names.in_layer.down = "mlp.dense_4h_to_h";
    names.final_norm = "ln_f";
    names.head = "lm_head";
    names.buffers = {"self_attention.masked_bias", "self_attention.bias"};
    return names;
}

}  // namespace

const Family kBloom{"bloom", {"bloom"}, "BLOOM: ALiBi, a norm after the embedding", read, names};

}  // namespace headscope::model
