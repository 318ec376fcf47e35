// SPDX-License-Identifier: GPL-3.0-or-later
// Gemma 3 (arXiv 2503.19786): Gemma 2 with norms of each query and key head in place of the caps, and rotary
// frequencies of their own where there is a window: on five of six layers. Of files with images, the text tower.
#include <cmath>

#include "core/model/families/families.h"

namespace headscope::model {
namespace {

/// EmbeddingGemma (arXiv 2509.20354): tokens see later ones, and half the window on either side, themselves included.
void see_both_ways(ModelConfig& config) {
    config.causal = false;
    for (std::int64_t& window : config.windows)
        if (window > 0) window = window / 2 + 1;
}

ModelConfig read_text(const ConfigReader& reader) {
    // Files with images leave out whatever is as in the smallest of them.
    const SizeDefaults sizes{4, 256, 262'208, 2304, 26, 8, 9216};
    ModelConfig config = read_llama_without_positions(reader, 131072, sizes);
    config.feed_forward_bias = false;
    config.activation = read_activation(reader, "hidden_activation", "gelu_pytorch_tanh");
    config.norm_gain_offset = 1.0;
    config.query_key_norm = QueryKeyNorm::each_head;
    config.embedding_scale = std::sqrt(static_cast<double>(config.hidden));
    config.attention_scale = 1.0 / std::sqrt(reader.positive("query_pre_attn_scalar", 256));
    // transformers reads attn_logit_softcapping and does not cap.
    if (reader.has("final_logit_softcapping")) config.final_soft_cap = reader.positive("final_logit_softcapping", 1);
    const std::int64_t pattern = reader.size("sliding_window_pattern", 6);
    config.windows = read_windows_where(reader, config.layers, read_window(reader, 4096),
                                        [pattern](std::int64_t layer) { return (layer + 1) % pattern != 0; });
    if (reader.boolean("use_bidirectional_attention", false)) see_both_ways(config);
    RopeDefaults full, windowed;
    full.theta = 1'000'000.0;
    windowed.theta_key = "rope_local_base_freq";
    read_two_ropes(config, reader, full, windowed);
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    return config;
}

ModelConfig read(const ConfigReader& reader) {
    if (reader.text("model_type", "") != "gemma3") return read_text(reader);
    const auto text = reader.object("text_config");
    if (!text) reader.refuse("text_config", "an object");
    require_false(*text, "use_bidirectional_attention");
    ModelConfig config = read_text(*text);
    // transformers' class for these has the tie beside the towers, and caps no logits.
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    config.final_soft_cap = 0;
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = gemma2_names(config);
    names.in_layer.query_norm = "self_attn.q_norm";
    names.in_layer.key_norm = "self_attn.k_norm";
    names.prefixes = {"model.", "", "model.language_model.", "language_model.model.", "language_model."};
    names.old_head = "language_model.lm_head";
    return names;
}

}  // namespace

const Family kGemma3{"gemma3",
                     {"gemma3_text", "gemma3"},
                     "Gemma 3: norms of each query and key head, windows on five of six layers; of its files with "
                     "images the text tower",
                     read,
                     names};

}  // namespace headscope::model
