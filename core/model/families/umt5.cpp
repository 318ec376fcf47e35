// SPDX-License-Identifier: GPL-3.0-or-later
// umT5 (Chung et al., arXiv 2304.09151): T5 1.1 with a bias by distance of its own in every layer.
#include "core/model/families/families.h"

#include <cmath>

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_t5(reader, "gated-gelu");
    // transformers takes every file for one of shared embeddings and scales what the head reads, whatever it says.
    config.head_scale = 1.0 / std::sqrt(static_cast<double>(config.hidden));
    config.decoder_start = reader.count("decoder_start_token_id", 0);
    return config;
}

TensorNames with_own_bias(TensorNames names) {
    names.bucket_bias.clear();
    names.in_layer.bucket_bias = "layer.0.SelfAttention.relative_attention_bias";
    return names;
}

TensorNames encoder_names(const ModelConfig& config) {
    return with_own_bias(t5_encoder_names(config));
}

TensorNames names(const ModelConfig& config) {
    return with_own_bias(t5_names(config));
}

}  // namespace

const Family kUmT5{"umt5", {"umt5"}, "umT5: T5 with biases by distance of each layer", read, names, encoder_names};

}  // namespace headscope::model
