// SPDX-License-Identifier: GPL-3.0-or-later
// StarCoder 2 (Lozhkov et al., arXiv 2402.19173): rotary positions, grouped heads, layer norms, a plain feed-forward
// and biases; one window on every layer.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    const SizeKeys keys;
    ModelConfig config;
    SizeDefaults sizes;
    sizes.key_value_heads = 2;
    read_sizes(config, reader, keys, sizes);
    config.max_positions = reader.size(keys.positions, 4096);
    config.positions = PositionKind::rotary;
    config.rope = read_rope(reader, config.max_positions, config.head_size);
    if (config.rope.type == "default") config.rope.partial = 1.0;  // the whole head, as Llama's
    config.norm = NormKind::layer;
    config.norm_epsilon = reader.positive("norm_epsilon", 1e-5);
    config.activation = read_activation(reader, "hidden_act", "gelu_pytorch_tanh");
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = reader.boolean("use_bias", true);
    config.windows = read_windows_everywhere(reader, config.layers, read_window(reader, 0));
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.in_layer.gate.clear();
    names.in_layer.up = "mlp.c_fc";
    names.in_layer.down = "mlp.c_proj";
    return names;
}

}  // namespace

const Family kStarcoder2{
    "starcoder2", {"starcoder2"}, "StarCoder 2: layer norms, plain feed-forward, biases, a window", read, names};

}  // namespace headscope::model
