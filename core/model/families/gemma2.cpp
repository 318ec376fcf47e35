// SPDX-License-Identifier: GPL-3.0-or-later
// Gemma 2 (arXiv 2408.00118): scores and logits capped, windows on every other layer, norms before and after each part.
#include <cmath>

#include "core/model/families/families.h"

namespace headscope::model {
namespace {

/// A cap is on unless the file says null.
double cap(const ConfigReader& reader, const std::string& key, double otherwise) {
    return reader.is_null(key) ? 0.0 : reader.positive(key, otherwise);
}

ModelConfig read(const ConfigReader& reader) {
    require_false(reader, "use_bidirectional_attention");
    SizeDefaults sizes;
    sizes.key_value_heads = 4;
    sizes.head_size = 256;
    ModelConfig config = read_llama(reader, 8192, sizes);
    config.feed_forward_bias = false;
    config.activation = read_activation(reader, "hidden_activation", "gelu_pytorch_tanh");
    config.norm_gain_offset = 1.0;
    config.embedding_scale = std::sqrt(static_cast<double>(config.hidden));
    config.attention_scale = 1.0 / std::sqrt(reader.positive("query_pre_attn_scalar", 256));
    config.soft_cap = cap(reader, "attn_logit_softcapping", 50.0);
    config.final_soft_cap = cap(reader, "final_logit_softcapping", 30.0);
    config.windows = read_alternating_windows(reader, config.layers, read_window(reader, 4096));
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    return config;
}

}  // namespace

TensorNames gemma2_names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.in_layer.attention_update_norm = "post_attention_layernorm";
    names.in_layer.feed_forward_norm = "pre_feedforward_layernorm";
    names.in_layer.feed_forward_update_norm = "post_feedforward_layernorm";
    return names;
}

const Family kGemma2{
    "gemma2", {"gemma2"}, "Gemma 2: capped scores and logits, windows on every other layer", read, gemma2_names};

}  // namespace headscope::model
