// SPDX-License-Identifier: GPL-3.0-or-later
// Qwen1.5-MoE and Qwen2-57B-A14B (arXiv 2407.10671): Qwen2 with a mixture of experts on some layers, one of which every
// token has. Windows, if asked for, are on every other layer up to one.
#include <algorithm>

#include "core/model/families/families.h"

namespace headscope::model {

void read_qwen_experts(ModelConfig& config, const ConfigReader& reader, const std::string& key, std::int64_t experts,
                       std::int64_t per_token, std::int64_t size) {
    if (reader.count(key, experts) == 0) return;
    read_experts(config, reader, key, experts, per_token);
    config.expert_feed_forward = reader.size("moe_intermediate_size", size);
    config.expert_shares_of_chosen = reader.boolean("norm_topk_prob", false);
    const std::vector<double> plain = reader.numbers("mlp_only_layers");
    const std::int64_t step = reader.size("decoder_sparse_step", 1);
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
        const bool listed = std::find(plain.begin(), plain.end(), static_cast<double>(layer)) != plain.end();
        config.expert_layers.push_back(!listed && (layer + 1) % step == 0 ? 1 : 0);
    }
}

void name_qwen_experts(TensorNames& names) {
    ExpertNames each, all;
    each.router = all.router = "mlp.gate";
    each.gate = "mlp.experts.{}.gate_proj";
    each.up = "mlp.experts.{}.up_proj";
    each.down = "mlp.experts.{}.down_proj";
    all.gate_up = "mlp.experts.gate_up_proj";
    all.down = "mlp.experts.down_proj";
    names.in_layer.experts = {each, all};
    names.keys.experts = "num_experts";
}

namespace {

ModelConfig read(const ConfigReader& reader) {
    SizeDefaults sizes;
    sizes.key_value_heads = 16;
    ModelConfig config = read_llama(reader, 32768, sizes);
    config.query_key_value_bias = reader.boolean("qkv_bias", true);
    config.output_bias = config.feed_forward_bias = false;
    const std::int64_t first_full = reader.count("max_window_layers", 28);
    const bool windows = reader.boolean("use_sliding_window", false);
    config.windows =
        read_windows_where(reader, config.layers, windows ? read_window(reader, 4096) : 0,
                           [first_full](std::int64_t layer) { return layer % 2 == 0 && layer < first_full; });
    read_qwen_experts(config, reader, "num_experts", 60, 4, 1408);
    config.shared_expert = reader.size("shared_expert_intermediate_size", 5632);
    config.shared_expert_gated = true;
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    name_qwen_experts(names);
    name_shared_qwen_expert(names);
    return names;
}

}  // namespace

const Family kQwen2Moe{"qwen2_moe",
                       {"qwen2_moe"},
                       "Qwen1.5-MoE, Qwen2-57B-A14B: Qwen2 with a mixture of experts, one for every token",
                       read,
                       names};

}  // namespace headscope::model
