// SPDX-License-Identifier: GPL-3.0-or-later
// RoBERTa (Liu et al., arXiv 1907.11692) and the models that transformers computes by the same code under other names:
// BERT's layers; positions count the tokens that are no padding, from the row after the padding's; a head of its own.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    const SizeKeys keys;
    require_false(reader, "is_decoder");
    ModelConfig config = read_bert(reader);
    const std::int64_t padding = reader.count("pad_token_id", 1);
    if (padding >= config.vocabulary || reader.is_null("pad_token_id"))
        reader.refuse("pad_token_id", "an id of the vocabulary");
    skip_padding_positions(config, reader, keys, padding);
    config.head_activation = Activation::gelu;
    read_class_head(config, reader);
    read_span_head(config, reader);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = bert_names(config);
    names.prefixes = {"roberta.", "data2vec_text.", ""};
    names.head = "lm_head.decoder";
    names.head_bias = {"lm_head.decoder.bias", "lm_head.bias"};
    names.head_transform = "lm_head.dense";
    names.head_transform_norm = "lm_head.layer_norm";
    name_joint_class_head(names, config);
    name_span_head(names, config);
    return names;
}

}  // namespace

const Family kRoberta{"roberta",
                      {"roberta", "xlm-roberta", "camembert", "data2vec-text"},
                      "RoBERTa, XLM-RoBERTa, CamemBERT: BERT with positions that skip padding",
                      read,
                      names};

}  // namespace headscope::model
