// SPDX-License-Identifier: GPL-3.0-or-later
// Ministral 8B (Mistral AI, 2024): Mistral with windows on some layers.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    SizeDefaults sizes;
    sizes.key_value_heads = 8;
    ModelConfig config = read_llama(reader, 131072, sizes);
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = false;
    config.windows = read_windows(reader, config.layers, read_window(reader, 4096), 0);
    return config;
}

}  // namespace

const Family kMinistral{
    "ministral", {"ministral"}, "Ministral 8B: Mistral with windows on some layers", read, llama_names};

}  // namespace headscope::model
