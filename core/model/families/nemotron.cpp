// SPDX-License-Identifier: GPL-3.0-or-later
// Nemotron and Minitron (arXiv 2402.16819): grouped heads, a part of each rotated, layer norms whose gain is 1 + w, a
// plain feed-forward with squared ReLU.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_llama_without_positions(reader, 4096);
    config.positions = PositionKind::rotary;
    RopeDefaults rope;
    rope.partial = 0.5;
    config.rope = read_rope(reader, config.max_positions, config.head_size, rope);
    config.norm = NormKind::layer;
    config.norm_gain_offset = 1.0;
    config.norm_epsilon = reader.positive("norm_eps", 1e-5);
    config.activation = read_activation(reader, "hidden_act", "relu2");
    config.gated_feed_forward = false;
    if (!reader.has("initializer_range")) config.initializer_range = 0.0134;
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.in_layer.gate.clear();
    return names;
}

}  // namespace

const Family kNemotron{"nemotron",
                       {"nemotron"},
                       "Nemotron, Minitron: layer norms with gain 1 + w, squared ReLU, part of each head rotated",
                       read,
                       names};

}  // namespace headscope::model
