// SPDX-License-Identifier: GPL-3.0-or-later
// BERT (Devlin et al., arXiv 1810.04805): an encoder, post-norm, learned positions, token types, head for masked words.
#include "core/model/families/families.h"

namespace headscope::model {

ModelConfig read_bert(const ConfigReader& reader) {
    const SizeKeys keys;
    require_false(reader, "add_cross_attention");
    if (reader.text("position_embedding_type", "absolute") != "absolute") {
        reader.unsupported("position_embedding_type", "absolute");
    }
    ModelConfig config;
    read_sizes(config, reader, keys);
    config.token_types = reader.size(keys.token_types, 2);
    config.max_positions = reader.size(keys.positions, 512);
    config.positions = PositionKind::learned;
    config.positions_are_a_table = true;
    config.causal = reader.boolean("is_decoder", false);
    config.pre_norm = config.final_norm = false;
    config.embedding_norm = true;
    config.norm = NormKind::layer;
    config.norm_epsilon = reader.positive("layer_norm_eps", 1e-12);
    config.activation = read_activation(reader, "hidden_act", "gelu");
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = true;
    config.head_transform = config.head_bias = true;
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    return config;
}

namespace {

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_bert(reader);
    read_class_head(config, reader);
    read_span_head(config, reader);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = bert_names(config);
    name_class_head(names, config, "bert.pooler.dense");
    name_span_head(names, config);
    return names;
}

}  // namespace

TensorNames bert_names(const ModelConfig&) {
    TensorNames names;
    names.prefixes = {"bert.", ""};
    names.token_embedding = "embeddings.word_embeddings";
    names.position_embedding = "embeddings.position_embeddings";
    names.token_type_embedding = "embeddings.token_type_embeddings";
    names.embedding_norm = "embeddings.LayerNorm";
    names.layer = "encoder.layer.{}.";
    names.in_layer.query = "attention.self.query";
    names.in_layer.key = "attention.self.key";
    names.in_layer.value = "attention.self.value";
    names.in_layer.output = "attention.output.dense";
    names.in_layer.input_norm = "attention.output.LayerNorm";
    names.in_layer.up = "intermediate.dense";
    names.in_layer.down = "output.dense";
    names.in_layer.feed_forward_norm = "output.LayerNorm";
    names.old_norm_names = true;
    names.head = "cls.predictions.decoder";
    names.head_bias = {"cls.predictions.decoder.bias", "cls.predictions.bias"};
    names.head_transform = "cls.predictions.transform.dense";
    names.head_transform_norm = "cls.predictions.transform.LayerNorm";
    names.buffers = {"embeddings.position_ids", "embeddings.token_type_ids"};
    return names;
}

const Family kBert{
    "bert", {"bert"}, "BERT: encoder, post-norm, token types, heads for masked words and classes", read, names};

}  // namespace headscope::model
