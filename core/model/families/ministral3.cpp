// SPDX-License-Identifier: GPL-3.0-or-later
// Ministral 3 (Mistral AI, 2025): Mistral whose queries grow with position, beyond the text that it was trained on. Of
// files with images (Mistral Small 3.1 and later, whose text is a Mistral, and Ministral 3), the text tower.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

/// Rotary settings of a file without rotary parameters, whatever its rope_theta.
void read_published_rope(ModelConfig& config, const ConfigReader& reader) {
    config.rope.type = "yarn";
    config.rope.theta = 1'000'000.0;
    config.rope.factor = 16.0;
    config.rope.mscale = config.rope.mscale_all_dim = 1.0;
    config.rope.original_positions = reader.size("original_max_position_embeddings", 16384);
    config.query_growth = 0.1;
}

ModelConfig read_text(const ConfigReader& reader) {
    const SizeDefaults sizes{8, 128, 131'072, 4096, 34, 32, 14'336};
    ModelConfig config = read_llama(reader, 262144, sizes);
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = false;
    const bool scaled = reader.has("rope_scaling") && !reader.is_empty_object("rope_scaling");
    const auto rope = reader.object(scaled ? "rope_scaling" : "rope_parameters");
    if (!rope) {
        read_published_rope(config, reader);
    } else {
        if (!rope->has("llama_4_scaling_beta")) rope->refuse("llama_4_scaling_beta", "a number");
        config.query_growth = rope->number("llama_4_scaling_beta", 0);
    }
    config.query_growth_step = config.rope.original_positions;
    config.windows = read_windows_everywhere(reader, config.layers, read_window(reader, 0));
    return config;
}

ModelConfig read(const ConfigReader& reader) {
    if (reader.text("model_type", "") != "mistral3") return read_text(reader);
    const auto text = reader.object("text_config");
    if (!text) reader.refuse("text_config", "an object");
    const std::string type = text->text("model_type", "mistral");
    if (type != "mistral" && type != "ministral3") text->unsupported("model_type", "mistral or ministral3");
    ModelConfig config = type == "mistral" ? read_mistral(*text) : read_text(*text);
    // transformers' class for these has the tie beside the towers.
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.prefixes = {"model.", "", "model.language_model.", "language_model.model.", "language_model."};
    names.old_head = "language_model.lm_head";
    return names;
}

}  // namespace

const Family kMinistral3{"ministral3",
                         {"ministral3", "mistral3"},
                         "Ministral 3: Mistral whose queries grow with position; of Mistral's files with images the "
                         "text tower",
                         read,
                         names};

}  // namespace headscope::model
