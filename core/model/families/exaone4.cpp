// SPDX-License-Identifier: GPL-3.0-or-later
// EXAONE 4.0 (LG AI Research, arXiv 2507.11407): norms after each part and of each query and key head; of files with
// windows these are on three of four layers, and the others have no positions.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    SizeDefaults sizes;
    sizes.key_value_heads = 32;
    ModelConfig config = read_llama(reader, 2048, sizes);
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = false;
    config.query_key_norm = QueryKeyNorm::each_head;
    const std::int64_t window = read_window(reader, 4096);
    // A list takes the place of the pattern, which may then be a text ("LLLG").
    const std::int64_t pattern = reader.has("layer_types") ? 1 : reader.size("sliding_window_pattern", 4);
    config.windows = read_windows_where(reader, config.layers, window,
                                        [pattern](std::int64_t layer) { return (layer + 1) % pattern != 0; });
    for (const std::int64_t here : config.windows) config.rotary_layers.push_back(here > 0 ? 1 : 0);
    return config;
}

}  // namespace

const Family kExaone4{"exaone4",
                      {"exaone4"},
                      "EXAONE 4.0: norms after each part, windows, and no positions where there is none",
                      read,
                      olmo2_names};

}  // namespace headscope::model
