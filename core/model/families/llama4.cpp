// SPDX-License-Identifier: GPL-3.0-or-later
// Llama 4 (Meta, 2025): Llama with a mixture of experts on some layers, whose weights multiply what an expert reads.
// Most layers cut the text into pieces, turn neighbouring numbers as pairs and norm them after that; the others see all
// of it without positions, and their queries grow with position. Of files with images, the text tower.
#include <algorithm>

#include "core/model/families/families.h"

namespace headscope::model {
namespace {

/// layer_types, or pieces wherever there are positions.
std::vector<std::int64_t> read_chunks(const ConfigReader& reader, const ModelConfig& config) {
    const std::string size_key = "attention_chunk_size", key = "layer_types";
    if (reader.is_null(size_key)) reader.refuse(size_key, "a whole number");
    const std::int64_t size = reader.size(size_key, 8192);
    std::vector<std::int64_t> chunks;
    if (!reader.has(key)) {
        for (const std::int64_t turns : config.rotary_layers) chunks.push_back(turns != 0 ? size : 0);
        return chunks;
    }
    for (const std::string& type : reader.texts(key)) {
        if (type != "chunked_attention" && type != "full_attention")
            reader.unsupported(key, "chunked_attention or full_attention for each layer");
        chunks.push_back(type == "chunked_attention" ? size : 0);
    }
    if (static_cast<std::int64_t>(chunks.size()) < config.layers)
        reader.refuse(key, "a list of " + std::to_string(config.layers) + ", one for each layer");
    return chunks;
}

void read_experts_of_some_layers(ModelConfig& config, const ConfigReader& reader) {
    config.expert_feed_forward = config.shared_expert = config.feed_forward;
    config.feed_forward = reader.size("intermediate_size_mlp", 16384);
    read_experts(config, reader, "num_local_experts", 16, 1);
    config.expert_shares_of_chosen = false;
    config.routing.sigmoid = config.routing.weighs_input = true;
    const std::vector<double> listed = reader.numbers("moe_layers");
    const std::int64_t step = reader.size("interleave_moe_layer_step", 1);
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
        const bool here = reader.has("moe_layers")
                              ? std::find(listed.begin(), listed.end(), static_cast<double>(layer)) != listed.end()
                              : (layer + 1) % step == 0;
        config.expert_layers.push_back(here ? 1 : 0);
    }
}

ModelConfig read_text(const ConfigReader& reader) {
    if (reader.is_null("is_causal") || !reader.boolean("is_causal", true))
        reader.unsupported("is_causal", "true where a text is cut into pieces");
    // Files with images leave out whatever is as in Scout.
    const SizeDefaults sizes{8, 128, 202'048, 5120, 48, 40, 8192};
    ModelConfig config = read_llama_without_positions(reader, 131072, sizes);
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    config.feed_forward_bias = false;
    config.positions = PositionKind::rotary;
    RopeDefaults rope;
    rope.theta = 500'000.0;
    config.rope = read_rope(reader, config.max_positions, config.head_size, rope);
    if (config.rope.type == "default") config.rope.partial = 1.0;
    if (config.rope.partial != 1) reader.unsupported("partial_rotary_factor", "1: whole heads turn");
    config.rope.interleaved = true;
    config.rotary_layers = read_rotary_layers(reader, config.layers, true);
    config.chunks = read_chunks(reader, config);
    if (reader.boolean("use_qk_norm", true)) config.query_key_norm = QueryKeyNorm::rotated_head;
    if (reader.boolean("attn_temperature_tuning", true)) {
        config.query_growth = reader.number("attn_scale", 0.1);
        config.query_growth_step = reader.size("floor_scale", 8192);
        config.query_growth_unrotated = true;
    }
    read_experts_of_some_layers(config, reader);
    return config;
}

ModelConfig read(const ConfigReader& reader) {
    if (reader.text("model_type", "") != "llama4") return read_text(reader);
    const auto text = reader.object("text_config");
    if (!text) reader.refuse("text_config", "an object");
    return read_text(*text);
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.prefixes = {"model.", "", "model.language_model.", "language_model.model.", "language_model."};
    names.old_head = "language_model.lm_head";
    names.in_layer.gate = "feed_forward.gate_proj";
    names.in_layer.up = "feed_forward.up_proj";
    names.in_layer.down = "feed_forward.down_proj";
    names.in_layer.shared_gate = "feed_forward.shared_expert.gate_proj";
    names.in_layer.shared_up = "feed_forward.shared_expert.up_proj";
    names.in_layer.shared_down = "feed_forward.shared_expert.down_proj";
    ExpertNames experts;
    experts.router = "feed_forward.router";
    experts.gate_up = "feed_forward.experts.gate_up_proj";
    experts.down = "feed_forward.experts.down_proj";
    experts.input_first = true;
    names.in_layer.experts = {experts};
    names.keys.feed_forward = "intermediate_size_mlp";
    names.keys.expert_feed_forward = names.keys.shared_expert = "intermediate_size";
    return names;
}

}  // namespace

const Family kLlama4{
    "llama4",
    {"llama4_text", "llama4"},
    "Llama 4: attention within pieces of the text, experts, layers without positions; of its files with "
    "images the text tower",
    read,
    names};

}  // namespace headscope::model
