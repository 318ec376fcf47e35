// SPDX-License-Identifier: GPL-3.0-or-later
// Qwen3's mixtures of experts (arXiv 2505.09388): Qwen3 with experts on some layers, and one window, if asked for, on
// every layer.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    SizeDefaults sizes;
    sizes.key_value_heads = 4;
    ModelConfig config = read_llama(reader, 32768, sizes);
    config.feed_forward_bias = false;
    config.query_key_norm = QueryKeyNorm::each_head;
    const bool windows = reader.boolean("use_sliding_window", false);
    config.windows = read_windows_everywhere(reader, config.layers, windows ? read_window(reader, 4096) : 0);
    read_qwen_experts(config, reader, present_key(reader, {"num_local_experts", "num_experts"}), 128, 8, 768);
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

const Family kQwen3Moe{
    "qwen3_moe", {"qwen3_moe"}, "Qwen3-30B-A3B and others: Qwen3 with a mixture of experts", read, names};

}  // namespace headscope::model
