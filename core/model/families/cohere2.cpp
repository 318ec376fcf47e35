// SPDX-License-Identifier: GPL-3.0-or-later
// Command R7B and Command A (Cohere, arXiv 2504.00698): Command R with windows on three of four layers; the others have
// no positions.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_cohere(reader, 10000.0);
    const std::int64_t pattern = reader.size("sliding_window_pattern", 4);
    const std::int64_t window = read_window(reader, 4096);
    if (window == 0) reader.refuse("sliding_window", "a whole number from 1 to 2^31");
    config.windows = read_windows_where(reader, config.layers, window,
                                        [pattern](std::int64_t layer) { return (layer + 1) % pattern != 0; });
    for (const std::int64_t here : config.windows) config.rotary_layers.push_back(here > 0 ? 1 : 0);
    return config;
}

}  // namespace

const Family kCohere2{"cohere2",
                      {"cohere2"},
                      "Command R7B, Command A: Command R with windows, and no positions where there is none",
                      read,
                      cohere_names};

}  // namespace headscope::model
