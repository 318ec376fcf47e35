// SPDX-License-Identifier: GPL-3.0-or-later
// ELECTRA (Clark et al., arXiv 2003.10555): BERT with embeddings that may be smaller and are projected then; generators
// have a head for masked words, discriminators none for the vocabulary.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_bert(reader);
    const std::int64_t size = reader.size(SizeKeys().embedding, 128);
    if (size != config.hidden) config.embedding_size = size;
    config.embedding_sum_projected = config.embedding_size > 0;
    config.head_activation = Activation::gelu;
    read_class_head(config, reader, Activation::gelu);
    read_span_head(config, reader);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = bert_names(config);
    names.prefixes = {"electra.", ""};
    names.embedding_projection = "embeddings_project";
    names.head = "generator_lm_head";
    names.head_bias = {"generator_lm_head.bias"};
    names.head_transform = "generator_predictions.dense";
    names.head_transform_norm = "generator_predictions.LayerNorm";
    name_joint_class_head(names, config);
    name_span_head(names, config);
    return names;
}

}  // namespace

const Family kElectra{
    "electra", {"electra"}, "ELECTRA: BERT with small embeddings; a head for masked words in generators", read, names};

}  // namespace headscope::model
