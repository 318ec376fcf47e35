// SPDX-License-Identifier: GPL-3.0-or-later
// OLMoE (Muennighoff et al., arXiv 2409.02060): Llama with norms of all query and all key heads together, which are cut
// after that, and a mixture of experts.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    const SizeKeys keys;
    ModelConfig config = read_llama(reader, 4096);
    if (config.head_size * config.heads != config.hidden)
        reader.refuse(keys.head_size, keys.hidden + " / " + keys.heads);
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    config.feed_forward_bias = false;
    config.query_key_norm = QueryKeyNorm::all_heads;
    if (reader.has("clip_qkv")) config.query_key_value_clip = reader.positive("clip_qkv", 1);
    read_experts(config, reader, present_key(reader, {"num_local_experts", "num_experts"}), 64, 8);
    config.expert_shares_of_chosen = reader.boolean("norm_topk_prob", false);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.in_layer.query_norm = "self_attn.q_norm";
    names.in_layer.key_norm = "self_attn.k_norm";
    name_qwen_experts(names);
    return names;
}

}  // namespace

const Family kOlmoe{"olmoe", {"olmoe"}, "OLMoE: norms of queries and keys, a mixture of experts", read, names};

}  // namespace headscope::model
