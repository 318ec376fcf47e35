// SPDX-License-Identifier: GPL-3.0-or-later
// OLMo 2 (arXiv 2501.00656): Llama whose norms come after each part, with norms of all query and all key heads
// together.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_llama(reader, 2048);
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    config.feed_forward_bias = false;
    config.query_key_norm = QueryKeyNorm::all_heads;
    return config;
}

}  // namespace

TensorNames olmo2_names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.in_layer.input_norm.clear();
    names.in_layer.query_norm = "self_attn.q_norm";
    names.in_layer.key_norm = "self_attn.k_norm";
    names.in_layer.attention_update_norm = "post_attention_layernorm";
    names.in_layer.feed_forward_norm.clear();
    names.in_layer.feed_forward_update_norm = "post_feedforward_layernorm";
    return names;
}

const Family kOlmo2{
    "olmo2", {"olmo2"}, "OLMo 2: Llama with norms after each part, and of queries and keys", read, olmo2_names};

}  // namespace headscope::model
