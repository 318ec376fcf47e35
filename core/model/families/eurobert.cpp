// SPDX-License-Identifier: GPL-3.0-or-later
// EuroBERT (Boizard et al., arXiv 2503.05500): Llama as an encoder; the head for masked words is one matrix.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_llama(reader, 8192);
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    config.causal = false;
    config.head_bias = config.feed_forward_bias;
    read_class_head(config, reader, Activation::gelu);
    read_text_pooling(config, reader, "bos", {"bos", "mean", "late"}, "late");
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.head_bias = {"lm_head.bias"};
    name_class_head(names, config, "dense");
    return names;
}

}  // namespace

const Family kEuroBert{"eurobert", {"eurobert"}, "EuroBERT: Llama as an encoder", read, names};

}  // namespace headscope::model
