// SPDX-License-Identifier: GPL-3.0-or-later
// GLM-4.5 (Zhipu AI, arXiv 2508.06471): Llama of whose heads a part turns, perhaps with norms of each query and key
// head, and DeepSeek-V3's experts. Layers that predict further tokens are not run.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    SizeDefaults sizes;
    sizes.key_value_heads = 8;
    ModelConfig config = read_llama_without_positions(reader, 131072, sizes);
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    config.output_bias = config.feed_forward_bias = false;
    if (reader.boolean("use_qk_norm", false)) config.query_key_norm = QueryKeyNorm::each_head;
    config.positions = PositionKind::rotary;
    RopeDefaults rope;
    rope.partial = reader.is_null(rope.partial_key) ? 1.0 : 0.5;
    config.rope = read_rope(reader, config.max_positions, config.head_size, rope);
    read_deepseek_experts(config, reader, present_key(reader, {"num_local_experts", "n_routed_experts"}),
                          {128, 8, 1408, 1, 1, 1.0});
    read_sigmoid_routing(config, reader, 1, 1);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.in_layer.query_norm = "self_attn.q_norm";
    names.in_layer.key_norm = "self_attn.k_norm";
    name_deepseek_experts(names);
    return names;
}

}  // namespace

const Family kGlm4Moe{
    "glm4_moe", {"glm4_moe"}, "GLM-4.5: a part of each head turns, experts chosen by sigmoids", read, names};

}  // namespace headscope::model
