// SPDX-License-Identifier: GPL-3.0-or-later
// MPNet (Song et al., arXiv 2004.09297): RoBERTa without token types, with a bias of the scores by distance that all
// layers share.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    const SizeKeys keys;
    ModelConfig config;
    read_sizes(config, reader, keys);
    config.max_positions = reader.size(keys.positions, 512);
    config.positions_are_a_table = true;
    skip_padding_positions(config, reader, keys, 1);  // whatever pad_token_id says
    // transformers has 32 buckets up to a distance of 128, whatever the file says; what that says is the table's size.
    config.distance_buckets = 32;
    config.farthest_bucket = 128;
    config.bucket_rows = reader.size(keys.distance_buckets, 32);
    if (config.bucket_rows < config.distance_buckets)
        reader.refuse(keys.distance_buckets, "at least 32, which the model always has");
    config.causal = config.pre_norm = config.final_norm = false;
    config.embedding_norm = true;
    config.norm_epsilon = reader.positive("layer_norm_eps", 1e-12);
    config.activation = read_activation(reader, "hidden_act", "gelu");
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = true;
    config.head_transform = config.head_bias = true;
    config.head_activation = Activation::gelu;
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    read_class_head(config, reader);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = bert_names(config);
    names.prefixes = {"mpnet.", ""};
    names.bucket_bias = "encoder.relative_attention_bias";
    names.in_layer.query = "attention.attn.q";
    names.in_layer.key = "attention.attn.k";
    names.in_layer.value = "attention.attn.v";
    names.in_layer.output = "attention.attn.o";
    names.in_layer.input_norm = "attention.LayerNorm";
    names.head = "lm_head.decoder";
    names.head_bias = {"lm_head.decoder.bias", "lm_head.bias"};
    names.head_transform = "lm_head.dense";
    names.head_transform_norm = "lm_head.layer_norm";
    name_joint_class_head(names, config);
    return names;
}

}  // namespace

const Family kMpnet{"mpnet", {"mpnet"}, "MPNet: RoBERTa with a bias of the scores by distance", read, names};

}  // namespace headscope::model
