// SPDX-License-Identifier: GPL-3.0-or-later
// Bamba (IBM, Princeton, CMU and UIUC, 2024): Llama with Mamba2 in most layers, and half of each head turned.
#include <algorithm>

#include "core/mixers/types/mamba2.h"
#include "core/mixers/types/standard.h"
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    SizeDefaults sizes{8, 0, 128'000, 4096, 32, 32, 14'336};
    ModelConfig config = read_llama_without_positions(reader, 262'144, sizes);
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    RopeDefaults rope;
    rope.partial = 0.5;
    rope.partial_key = "";  // which transformers does not read beside rope_parameters
    config.positions = PositionKind::rotary;
    config.rope = read_rope(reader, config.max_positions, config.head_size, rope);
    const std::vector<double> softmax = reader.numbers("attn_layer_indices");
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
        const bool listed = std::find(softmax.begin(), softmax.end(), static_cast<double>(layer)) != softmax.end();
        config.mixers.emplace_back(listed ? mixers::kStandard.name : mixers::kMamba2.name);
    }
    read_mamba2_layers(config, reader);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.in_layer.feed_forward_norm = "pre_ff_layernorm";
    names.in_layer.gate = "feed_forward.gate_proj";
    names.in_layer.up = "feed_forward.up_proj";
    names.in_layer.down = "feed_forward.down_proj";
    names.final_norm = "final_layernorm";
    name_mamba2_layers(names, config);
    return names;
}

}  // namespace

const Family kBamba{"bamba", {"bamba"}, "Bamba: Mamba2 in most layers of a Llama", read, names};

}  // namespace headscope::model
