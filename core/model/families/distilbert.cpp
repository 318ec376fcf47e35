// SPDX-License-Identifier: GPL-3.0-or-later
// DistilBERT (Sanh et al., arXiv 1910.01108): BERT's layers under other names, without token types.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

SizeKeys keys() {
    SizeKeys keys;
    keys.hidden = "dim";
    keys.layers = "n_layers";
    keys.heads = "n_heads";
    keys.feed_forward = "hidden_dim";
    return keys;
}

ModelConfig read(const ConfigReader& reader) {
    SizeKeys sizes = keys();
    sizes.hidden = present_key(reader, {"hidden_size", "dim"});
    sizes.layers = present_key(reader, {"num_hidden_layers", "n_layers"});
    sizes.heads = present_key(reader, {"num_attention_heads", "n_heads"});
    ModelConfig config;
    read_sizes(config, reader, sizes);
    refuse_groups(config, reader, sizes);
    config.max_positions = reader.size(sizes.positions, 512);
    config.positions_are_a_table = true;
    config.causal = config.pre_norm = config.final_norm = false;
    config.embedding_norm = true;
    config.norm_epsilon = 1e-12;
    config.activation = read_activation(reader, "activation", "gelu");
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = true;
    config.head_transform = config.head_bias = true;
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    read_class_head(config, reader, Activation::relu);
    read_span_head(config, reader);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = bert_names(config);
    names.keys = keys();
    names.prefixes = {"distilbert.", ""};
    names.layer = "transformer.layer.{}.";
    names.in_layer.query = "attention.q_lin";
    names.in_layer.key = "attention.k_lin";
    names.in_layer.value = "attention.v_lin";
    names.in_layer.output = "attention.out_lin";
    names.in_layer.input_norm = "sa_layer_norm";
    names.in_layer.up = "ffn.lin1";
    names.in_layer.down = "ffn.lin2";
    names.in_layer.feed_forward_norm = "output_layer_norm";
    names.head = "vocab_projector";
    names.head_bias = {"vocab_projector.bias"};
    names.head_transform = "vocab_transform";
    names.head_transform_norm = "vocab_layer_norm";
    name_class_head(names, config, "pre_classifier");
    name_span_head(names, config);
    return names;
}

}  // namespace

const Family kDistilbert{"distilbert", {"distilbert"}, "DistilBERT: BERT's layers without token types", read, names};

}  // namespace headscope::model
