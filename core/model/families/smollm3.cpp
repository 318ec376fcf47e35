// SPDX-License-Identifier: GPL-3.0-or-later
// SmolLM3 (Hugging Face, 2025): Llama in which every fourth layer has no positions (Yang et al., arXiv 2501.18795).
#include "core/model/families/families.h"

namespace headscope::model {

std::vector<std::int64_t> read_rotary_layers(const ConfigReader& reader, std::int64_t layers, bool empty_is_none) {
    const std::string key = "no_rope_layers";
    const std::vector<double> listed = reader.numbers(key);
    const bool said = reader.has(key) && !(empty_is_none && listed.empty());
    if (said && static_cast<std::int64_t>(listed.size()) < layers)
        reader.refuse(key, "a list of at least " + std::to_string(layers) + ", one for each layer");
    const std::int64_t interval = reader.size("no_rope_layer_interval", 4);
    std::vector<std::int64_t> turns;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        const bool here = listed.empty() ? (layer + 1) % interval != 0 : listed[static_cast<std::size_t>(layer)] != 0;
        turns.push_back(here ? 1 : 0);
    }
    return turns;
}

namespace {

ModelConfig read(const ConfigReader& reader) {
    SizeDefaults sizes;
    sizes.key_value_heads = 4;
    RopeDefaults rope;
    rope.theta = 2'000'000.0;
    ModelConfig config = read_llama(reader, 32768, sizes, rope);
    config.rotary_layers = read_rotary_layers(reader, config.layers, false);
    // A list of layers is heeded without use_sliding_window.
    const bool windows = reader.boolean("use_sliding_window", false) || reader.has("layer_types");
    config.windows = read_windows_where(
        reader, config.layers, windows ? read_window(reader, 0) : 0,
        [&config](std::int64_t layer) { return config.rotary_layers[static_cast<std::size_t>(layer)] == 0; });
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    return config;
}

}  // namespace

const Family kSmolLm3{
    "smollm3", {"smollm3"}, "SmolLM3: Llama with no positions in every fourth layer", read, llama_names};

}  // namespace headscope::model
