// SPDX-License-Identifier: GPL-3.0-or-later
// Qwen2 and 2.5 (arXiv 2407.10671): Llama with biases on query, key and value, and windows on some layers if asked for.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_llama(reader, 32768);
    config.query_key_value_bias = true;
    config.output_bias = config.feed_forward_bias = false;
    const bool windows = reader.boolean("use_sliding_window", false);
    config.windows = read_windows(reader, config.layers, windows ? read_window(reader, 4096) : 0,
                                  reader.count("max_window_layers", 28));
    read_score_head(config, reader);
    return config;
}

}  // namespace

const Family kQwen2{
    "qwen2", {"qwen2"}, "Qwen2, Qwen2.5: Llama with biases on query, key and value", read, llama_or_score_names};

}  // namespace headscope::model
