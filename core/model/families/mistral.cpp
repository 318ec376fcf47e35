// SPDX-License-Identifier: GPL-3.0-or-later
// Mistral 7B and relatives (Jiang et al., arXiv 2310.06825): Llama without biases, with one window on every layer.
#include "core/model/families/families.h"

namespace headscope::model {

ModelConfig read_mistral(const ConfigReader& reader) {
    SizeDefaults sizes;
    sizes.key_value_heads = 8;
    ModelConfig config = read_llama(reader, 131072, sizes);
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = false;
    config.windows = read_windows_everywhere(reader, config.layers, read_window(reader, 4096));
    return config;
}

namespace {
ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_mistral(reader);
    read_score_head(config, reader);
    return config;
}
}  // namespace

const Family kMistral{"mistral", {"mistral"}, "Mistral: Llama with a sliding window", read, llama_or_score_names};

}  // namespace headscope::model
