// SPDX-License-Identifier: GPL-3.0-or-later
// GLM-4 (Zeng et al., arXiv 2406.12793): Llama with gate and up in one matrix and biases on query, key and value; of
// half of each head neighbouring numbers are rotated as pairs.
#include "core/model/families/families.h"

namespace headscope::model {

ModelConfig read_glm(const ConfigReader& reader) {
    SizeDefaults sizes;
    sizes.key_value_heads = 2;
    sizes.head_size = 128;
    ModelConfig config = read_llama_without_positions(reader, 131072, sizes);
    config.norm_epsilon = reader.positive("rms_norm_eps", 1.5625e-7);
    config.query_key_value_bias = reader.boolean("attention_bias", true);
    config.output_bias = config.feed_forward_bias = false;
    config.positions = PositionKind::rotary;
    RopeDefaults rope;
    rope.partial = reader.is_null(rope.partial_key) ? 1.0 : 0.5;
    config.rope = read_rope(reader, config.max_positions, config.head_size, rope);
    config.rope.interleaved = true;
    return config;
}

TensorNames glm_names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.in_layer.gate_up = "mlp.gate_up_proj";
    return names;
}

const Family kGlm{"glm", {"glm"}, "GLM-4: half of each head rotated in pairs, fused gate and up", read_glm, glm_names};

}  // namespace headscope::model
