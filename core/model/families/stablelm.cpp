// SPDX-License-Identifier: GPL-3.0-or-later
// StableLM 2 and 3B (Bellagente et al., arXiv 2402.17834): Llama with layer norms, a part of each head rotated; the
// 12B: norms of each query and key head's own, attention and feed-forward side by side after one norm.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    const SizeKeys keys;
    SizeDefaults sizes;
    sizes.key_value_heads = 32;
    ModelConfig config = read_llama_without_positions(reader, 4096, sizes);
    if (config.head_size * config.heads != config.hidden)
        reader.refuse(keys.head_size, keys.hidden + " / " + keys.heads);
    config.positions = PositionKind::rotary;
    RopeDefaults rope;
    rope.partial = 0.25;
    config.rope = read_rope(reader, config.max_positions, config.head_size, rope);
    config.norm = NormKind::layer;
    config.norm_epsilon = reader.positive("layer_norm_eps", 1e-5);
    config.query_key_value_bias = reader.boolean("use_qkv_bias", false);
    config.output_bias = config.feed_forward_bias = false;
    config.parallel_residual = reader.boolean("use_parallel_residual", false);
    config.parallel_norms = !config.parallel_residual;
    if (reader.boolean("qk_layernorm", false)) {
        config.query_key_norm = QueryKeyNorm::own_of_each_head;
        // Each is a tensor that is asked for before the file is.
        if (config.layers * (config.heads + config.key_value_heads) > kMostHeads)
            reader.refuse(keys.heads, "at most " + std::to_string(kMostHeads) + " heads with norms, of all layers");
    }
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.in_layer.query_norm = "self_attn.q_layernorm.norms.{}";
    names.in_layer.key_norm = "self_attn.k_layernorm.norms.{}";
    if (config.parallel_residual) names.in_layer.feed_forward_norm.clear();
    return names;
}

}  // namespace

const Family kStableLm{"stablelm",
                       {"stablelm"},
                       "StableLM: layer norms, part of each head rotated, norms of each head's own",
                       read,
                       names};

}  // namespace headscope::model
