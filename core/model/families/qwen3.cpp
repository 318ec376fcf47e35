// SPDX-License-Identifier: GPL-3.0-or-later
// Qwen3 (arXiv 2505.09388): Llama with RMS norms of each query and key head, and windows on some layers if asked for.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    SizeDefaults sizes;
    sizes.key_value_heads = 32;
    sizes.head_size = 128;
    ModelConfig config = read_llama(reader, 32768, sizes);
    config.feed_forward_bias = false;
    config.query_key_norm = QueryKeyNorm::each_head;
    const bool windows = reader.boolean("use_sliding_window", false);
    config.windows = read_windows(reader, config.layers, windows ? read_window(reader, 4096) : 0,
                                  reader.count("max_window_layers", 28));
    read_score_head(config, reader);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_or_score_names(config);
    names.in_layer.query_norm = "self_attn.q_norm";
    names.in_layer.key_norm = "self_attn.k_norm";
    return names;
}

}  // namespace

const Family kQwen3{"qwen3", {"qwen3"}, "Qwen3: Llama with norms of each query and key head", read, names};

}  // namespace headscope::model
