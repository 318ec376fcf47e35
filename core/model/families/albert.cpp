// SPDX-License-Identifier: GPL-3.0-or-later
// ALBERT (Lan et al., arXiv 1909.11942): BERT whose layers share their weights, with small embeddings that are
// projected to the hidden size.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    require_false(reader, "is_decoder");
    ModelConfig config = read_bert(reader);
    config.activation = read_activation(reader, "hidden_act", "gelu_new");
    config.embedding_size = reader.size(SizeKeys().embedding, 128);
    config.embedding_sum_projected = true;
    // num_hidden_layers passes through a group each, a group being inner_group_num layers one after the other.
    const std::int64_t passes = config.layers, inner = reader.size("inner_group_num", 1);
    const std::int64_t groups = reader.size("num_hidden_groups", 1);
    if (groups > passes) reader.refuse("num_hidden_groups", "at most num_hidden_layers, " + std::to_string(passes));
    if (inner > kMostLayers / passes)
        reader.refuse("inner_group_num", "at most " + std::to_string(kMostLayers) + " layers in all");
    config.layers = passes * inner;
    config.group_layers = inner;
    const double passes_each = static_cast<double>(passes) / static_cast<double>(groups);
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
        // Divided in floating point and truncated, as in the reference.
        const auto group = static_cast<std::int64_t>(static_cast<double>(layer / inner) / passes_each);
        config.shared_layers.push_back(group * inner + layer % inner);
    }
    read_class_head(config, reader);
    read_span_head(config, reader);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = bert_names(config);
    names.prefixes = {"albert.", ""};
    names.embedding_projection = "encoder.embedding_hidden_mapping_in";
    const std::string stem = "encoder.albert_layer_groups.";
    const std::int64_t groups = config.shared_layers.back() / config.group_layers + 1;
    names.numbered.push_back({stem, groups, "num_hidden_groups"});
    for (std::int64_t group = 0; group < groups; ++group) {
        const std::string in_group = stem + std::to_string(group) + ".albert_layers.";
        names.numbered.push_back({in_group, config.group_layers, "inner_group_num"});
        for (std::int64_t layer = 0; layer < config.group_layers; ++layer)
            names.listed_layers.push_back(in_group + std::to_string(layer) + ".");
    }
    names.in_layer.query = "attention.query";
    names.in_layer.key = "attention.key";
    names.in_layer.value = "attention.value";
    names.in_layer.output = "attention.dense";
    names.in_layer.input_norm = "attention.LayerNorm";
    names.in_layer.up = "ffn";
    names.in_layer.down = "ffn_output";
    names.in_layer.feed_forward_norm = "full_layer_layer_norm";
    names.head = "predictions.decoder";
    names.head_bias = {"predictions.decoder.bias", "predictions.bias"};
    names.head_transform = "predictions.dense";
    names.head_transform_norm = "predictions.LayerNorm";
    name_class_head(names, config, "albert.pooler");
    name_span_head(names, config);
    return names;
}

}  // namespace

const Family kAlbert{
    "albert", {"albert"}, "ALBERT: BERT with layers that share weights, and small embeddings", read, names};

}  // namespace headscope::model
