// SPDX-License-Identifier: GPL-3.0-or-later
// What Headscope trains: a pre-norm decoder in the manner of Qwen2 whose layers each name their mixer
// (docs/file-formats.md, "Native checkpoints"; Deconstructing Attention, arXiv 2510.11602).
#include <algorithm>

#include "core/model/families/families.h"

namespace headscope::model {
namespace {

std::vector<std::string> read_layers(const ConfigReader& reader, std::int64_t layers) {
    std::vector<std::string> mixers = reader.texts("layers");
    if (mixers.empty()) mixers.assign(static_cast<std::size_t>(layers), "standard");
    if (static_cast<std::int64_t>(mixers.size()) != layers)
        reader.refuse("layers", "the mixers of " + std::to_string(layers) + " layers");
    return mixers;
}

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_llama(reader, 2048);
    config.query_key_value_bias = reader.boolean("attention_bias", false);
    config.output_bias = reader.boolean("output_bias", false);
    if (reader.boolean("qk_norm", false)) config.query_key_norm = QueryKeyNorm::each_head;
    if (!reader.boolean("rotary", true)) config.positions = PositionKind::none;
    config.mixers = read_layers(reader, config.layers);
    config.mixer_options = read_mixer_options(reader);
    // Guides are as long as the model's positions, and no longer.
    config.positions_are_a_table =
        std::any_of(config.mixers.begin(), config.mixers.end(),
                    [](const std::string& mixer) { return mixer == "rnd_emb_qk" || mixer == "fixed_seq_qk"; });
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.in_layer.query_norm = "self_attn.q_norm";
    names.in_layer.key_norm = "self_attn.k_norm";
    names.in_layer.mixer_gate = "self_attn.gate_proj";
    names.in_layer.mixer_up = "self_attn.up_proj";
    names.in_layer.mixer_down = "self_attn.down_proj";
    names.guide = "guide";
    names.guide_ids = "guide_ids";
    return names;
}

}  // namespace

const Family kHeadscope{
    "headscope", {"headscope"}, "Headscope's own: Qwen2's decoder with any mixer in each layer", read, names};

}  // namespace headscope::model
