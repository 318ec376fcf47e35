// SPDX-License-Identifier: GPL-3.0-or-later
// Gemma (Mesnard et al., arXiv 2403.08295): Llama with embeddings times the square root of their size, gains of 1 + w
// and gates of gelu.
#include <cmath>

#include "core/model/families/families.h"

namespace headscope::model {
namespace {

/// The first files say gelu and mean its approximation by tanh; transformers takes it so.
Activation activation(const ConfigReader& reader) {
    if (reader.text("hidden_act", "") == "gelu") return Activation::gelu_tanh;
    return read_activation(reader, "hidden_act", "gelu_pytorch_tanh");
}

ModelConfig read(const ConfigReader& reader) {
    require_false(reader, "use_bidirectional_attention");
    SizeDefaults sizes;
    sizes.key_value_heads = 16;
    sizes.head_size = 256;
    ModelConfig config = read_llama(reader, 8192, sizes);
    config.feed_forward_bias = false;
    config.activation = activation(reader);
    config.norm_gain_offset = 1.0;
    config.embedding_scale = std::sqrt(static_cast<double>(config.hidden));
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    return config;
}

}  // namespace

const Family kGemma{"gemma", {"gemma"}, "Gemma: Llama with scaled embeddings and gains of 1 + w", read, llama_names};

}  // namespace headscope::model
