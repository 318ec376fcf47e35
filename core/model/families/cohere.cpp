// SPDX-License-Identifier: GPL-3.0-or-later
// Command R (Cohere, 2024): attention and gated feed-forward side by side after one layer norm without bias, rotated
// pairs of neighbours, scaled logits; Command R+: norms of each query and key head's own.
#include "core/model/families/families.h"

namespace headscope::model {

ModelConfig read_cohere(const ConfigReader& reader, double default_theta) {
    RopeDefaults rope;
    rope.theta = default_theta;
    ModelConfig config = read_llama(reader, 8192, {}, rope);
    config.rope.interleaved = true;
    config.parallel_residual = true;
    config.parallel_norms = false;
    config.norm = NormKind::layer;
    config.norm_bias = false;
    config.norm_epsilon = reader.positive("layer_norm_eps", 1e-5);
    config.feed_forward_bias = false;
    config.head_scale = reader.positive("logit_scale", 0.0625);
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    return config;
}

TensorNames cohere_names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.in_layer.feed_forward_norm.clear();
    names.in_layer.query_norm = "self_attn.q_norm";
    names.in_layer.key_norm = "self_attn.k_norm";
    return names;
}

namespace {

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_cohere(reader, 500'000.0);
    if (reader.boolean("use_qk_norm", false)) config.query_key_norm = QueryKeyNorm::own_of_each_head;
    return config;
}

}  // namespace

const Family kCohere{"cohere",
                     {"cohere"},
                     "Command R: parallel residual after one norm, rotated pairs of neighbours, scaled logits",
                     read,
                     cohere_names};

}  // namespace headscope::model
