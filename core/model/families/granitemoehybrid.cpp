// SPDX-License-Identifier: GPL-3.0-or-later
// Granite 4 (IBM, 2025): Granite with Mamba2 in most layers, softmax attention without positions in the others, and
// beside the experts, of which there may be none, one that every token has.
#include "core/mixers/types/mamba2.h"
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    constexpr std::int64_t positions = 2048;
    const SizeDefaults sizes{0, 0, 32'000, 4096, 32, 32, 11'008};
    const bool turns = reader.text("position_embedding_type", "") == "rope";
    ModelConfig config =
        turns ? read_llama(reader, positions, sizes) : read_llama_without_positions(reader, positions, sizes);
    read_granite_scales(config, reader);
    config.feed_forward_bias = false;
    const std::int64_t shared = reader.size("shared_intermediate_size", 1024);
    if (reader.count("num_local_experts", 8) == 0) {
        config.feed_forward = shared;
    } else {
        read_experts(config, reader, "num_local_experts", 8, 2);
        config.shared_expert = shared;
    }
    // Without a list all have Mamba2; of two lists transformers takes the first of these.
    read_linear_layers(
        config, reader, mixers::kMamba2, [](std::int64_t) { return false; },
        present_key(reader, {"layers_block_type", "layer_types"}));
    read_mamba2_layers(config, reader);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    name_granite_experts(names);
    names.keys.shared_expert = "shared_intermediate_size";
    if (config.experts == 0) names.keys.feed_forward = "shared_intermediate_size";
    names.in_layer.gate_up = names.in_layer.shared_gate_up = "shared_mlp.input_linear";
    names.in_layer.down = names.in_layer.shared_down = "shared_mlp.output_linear";
    name_mamba2_layers(names, config);
    return names;
}

}  // namespace

const Family kGraniteMoeHybrid{"granitemoehybrid",
                               {"granitemoehybrid"},
                               "Granite 4: Mamba2 in most layers, perhaps a mixture of experts",
                               read,
                               names};

}  // namespace headscope::model
