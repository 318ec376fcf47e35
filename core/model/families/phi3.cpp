// SPDX-License-Identifier: GPL-3.0-or-later
// Phi-3 and Phi-4 (arXiv 2404.14219): Llama with query, key and value in one matrix and gate and up in another;
// positions are stretched by longrope, of a part of each head in some.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_llama_without_positions(reader, 4096);
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = false;
    config.positions = PositionKind::rotary;
    RopeDefaults rope;
    rope.original_positions = 4096;
    config.rope = read_rope(reader, config.max_positions, config.head_size, rope);
    if (config.rope.type != "default" && config.rope.type != "longrope")
        reader.unsupported(reader.has("rope_scaling") ? "rope_scaling" : "rope_parameters",
                           "longrope or the default kind");
    config.windows = read_windows_everywhere(reader, config.layers, read_window(reader, 0));
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.in_layer.query_key_value = "self_attn.qkv_proj";
    names.in_layer.gate_up = "mlp.gate_up_proj";
    return names;
}

}  // namespace

const Family kPhi3{"phi3", {"phi3"}, "Phi-3, Phi-4: fused projections, positions stretched by longrope", read, names};

}  // namespace headscope::model
