// SPDX-License-Identifier: GPL-3.0-or-later
// Qwen3.5 (Qwen team, 2026): Qwen3-Next with a map of its own for each part of Gated DeltaNet, and a plain feed-forward
// or experts. Of files with images, the text tower; the three positions of a token of a text are the same one.
#include "core/mixers/types/gated_deltanet.h"
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

bool is_mixture(const ConfigReader& reader) {
    const std::string type = reader.text("model_type", "");
    return type == "qwen3_5_moe" || type == "qwen3_5_moe_text";
}

ModelConfig read_text(const ConfigReader& reader, bool mixture) {
    if (!mixture) return read_qwen_hybrid(reader, {4, 256, 248'320, 4096, 32, 16, 12288});
    ModelConfig config = read_qwen_hybrid(reader, {2, 256, 248'320, 2048, 40, 16, 512});
    read_experts(config, reader, "num_experts", 256, 8);
    config.expert_feed_forward = reader.size("moe_intermediate_size", 512);
    config.shared_expert = reader.size("shared_expert_intermediate_size", 512);
    config.shared_expert_gated = true;
    return config;
}

ModelConfig read(const ConfigReader& reader) {
    const std::string type = reader.text("model_type", "");
    if (type != "qwen3_5" && type != "qwen3_5_moe") return read_text(reader, is_mixture(reader));
    const auto text = reader.object("text_config");
    if (!text) reader.refuse("text_config", "an object");
    ModelConfig config = read_text(*text, is_mixture(reader));
    // transformers' class for these has the tie beside the towers.
    config.tied_head = reader.boolean("tie_word_embeddings", false);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.prefixes = {"model.", "", "model.language_model.", "language_model.model.", "language_model."};
    names.in_layer.query_norm = "self_attn.q_norm";
    names.in_layer.key_norm = "self_attn.k_norm";
    name_qwen_experts(names);
    name_shared_qwen_expert(names);
    LayerNames& linear = names.of_mixer[mixers::kGatedDeltaNet.name] = gated_delta_names(names.in_layer);
    linear.recurrent.query_key_value = "in_proj_qkv";
    linear.recurrent.gate = "in_proj_z";
    linear.recurrent.write = "in_proj_b";
    linear.recurrent.decay = "in_proj_a";
    linear.recurrent.norm = "norm";
    linear.output = "linear_attn.out_proj";
    return names;
}

}  // namespace

const Family kQwen35{"qwen3_5",
                     {"qwen3_5_text", "qwen3_5_moe_text", "qwen3_5", "qwen3_5_moe"},
                     "Qwen3.5: Gated DeltaNet on three layers of four, attention with a gate, perhaps experts; of its "
                     "files with images the text tower",
                     read,
                     names};

}  // namespace headscope::model
