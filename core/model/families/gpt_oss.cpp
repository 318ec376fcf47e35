// SPDX-License-Identifier: GPL-3.0-or-later
// gpt-oss (arXiv 2508.10925): a mixture of experts, a learned sink logit for each head, windows on every other layer.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

/// Rotary settings of a file without rotary parameters.
RopeConfig published_rope(const ConfigReader& reader) {
    RopeConfig rope;
    rope.type = "yarn";
    rope.theta = reader.positive("rope_theta", 150000.0);
    rope.factor = 32.0;
    rope.truncate = false;
    rope.original_positions = reader.size("original_max_position_embeddings", 4096);
    return rope;
}

ModelConfig read(const ConfigReader& reader) {
    SizeDefaults sizes;
    sizes.key_value_heads = 8;
    sizes.head_size = 64;
    RopeDefaults rope;
    rope.theta = 150000.0;
    ModelConfig config = read_llama(reader, 131072, sizes, rope);
    // An empty rope_scaling is as none, empty rope_parameters are of the default kind.
    const bool scaled = reader.has("rope_scaling") && !reader.is_empty_object("rope_scaling");
    if (!scaled && !reader.has("rope_parameters")) config.rope = published_rope(reader);
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    config.query_key_value_bias = config.output_bias = reader.boolean("attention_bias", true);
    config.sink_logits = true;
    config.windows = read_alternating_windows(reader, config.layers, read_window(reader, 128));
    read_experts(config, reader, present_key(reader, {"num_experts", "num_local_experts"}), 128, 4);
    config.expert_slope = reader.number("swiglu_alpha", 1.702);
    config.expert_limit = reader.positive("swiglu_limit", 7.0);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.in_layer.sinks = "self_attn.sinks";
    ExpertNames experts;
    experts.router = "mlp.router";
    experts.gate_up = "mlp.experts.gate_up_proj";
    experts.down = "mlp.experts.down_proj";
    names.in_layer.experts = {experts};
    return names;
}

}  // namespace

const Family kGptOss{
    "gpt_oss", {"gpt_oss"}, "gpt-oss: mixture of experts, learned sinks, windows on every other layer", read, names};

}  // namespace headscope::model
