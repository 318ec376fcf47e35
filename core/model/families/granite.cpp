// SPDX-License-Identifier: GPL-3.0-or-later
// Granite 3 (IBM, 2024): Llama with a scale of its own for embeddings, scores, updates and logits.
#include "core/model/families/families.h"

namespace headscope::model {

void read_granite_scales(ModelConfig& config, const ConfigReader& reader) {
    config.embedding_scale = reader.positive("embedding_multiplier", 1.0);
    config.attention_scale = reader.positive("attention_multiplier", 1.0);
    config.update_scale = reader.positive("residual_multiplier", 1.0);
    config.head_scale = 1.0 / reader.positive("logits_scaling", 1.0);
}

ModelConfig read_granite(const ConfigReader& reader) {
    ModelConfig config = read_llama(reader, 2048);
    read_granite_scales(config, reader);
    return config;
}

const Family kGranite{"granite",
                      {"granite"},
                      "Granite 3: Llama with scaled embeddings, scores, updates and logits",
                      read_granite,
                      llama_names};

}  // namespace headscope::model
