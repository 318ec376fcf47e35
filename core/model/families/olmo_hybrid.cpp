// SPDX-License-Identifier: GPL-3.0-or-later
// OLMo Hybrid (Allen Institute for AI, 2026): OLMo 3 without windows on every fourth layer, perhaps without positions;
// the others are pre-norm and have Gated DeltaNet, whose steps may turn a part of the state round.
#include <algorithm>

#include "core/mixers/types/gated_deltanet.h"
#include "core/mixers/types/standard.h"
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

using mixers::kGatedDeltaNet;

/// A null is what published files have; a missing number, or no object at all, is 10 000.
bool has_positions(const ConfigReader& reader) {
    const bool said = reader.has("rope_scaling") && !reader.is_empty_object("rope_scaling");
    const auto rope = reader.object(said ? "rope_scaling" : "rope_parameters");
    if (rope && (rope->has("rope_theta") || rope->is_null("rope_theta"))) return rope->has("rope_theta");
    return !reader.is_null("rope_theta");
}

ModelConfig read(const ConfigReader& reader) {
    const SizeDefaults sizes{0, 0, 100'352, 3840, 32, 30, 11008};
    ModelConfig config = read_llama_without_positions(reader, 65536, sizes);
    if (config.head_size * config.heads != config.hidden)
        reader.refuse("head_dim", "hidden_size / num_attention_heads");
    config.feed_forward_bias = false;
    config.query_key_norm = QueryKeyNorm::all_heads;
    if (has_positions(reader)) {
        config.positions = PositionKind::rotary;
        config.rope = read_rope(reader, config.max_positions, config.head_size);
        if (config.rope.type == "default") config.rope.partial = 1.0;
    }
    // A short stack without a fourth layer ends in softmax attention.
    const std::int64_t last = config.layers < 4 ? config.layers - 1 : -1;
    read_linear_layers(config, reader, kGatedDeltaNet,
                       [last](std::int64_t layer) { return layer % 4 == 3 || layer == last; });
    for (const char* kind : {mixers::kStandard.name, kGatedDeltaNet.name}) {
        if (std::find(config.mixers.begin(), config.mixers.end(), kind) == config.mixers.end())
            reader.refuse("layer_types", "at least one layer of each kind");
    }
    const std::int64_t key_heads = reader.size("linear_num_key_heads", config.heads);
    const auto key_size =
        static_cast<std::int64_t>(0.75 * static_cast<double>(config.hidden) / static_cast<double>(key_heads));
    read_gated_delta_heads(config, reader, {config.heads, config.heads, key_size, 0});
    config.mixer_options.set(kGatedDeltaNet, "allow_neg_eigval", reader.boolean("linear_allow_neg_eigval", true));
    config.recurrent_norm_epsilon = 1e-5;
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = olmo2_names(config);
    LayerNames& linear = names.of_mixer[kGatedDeltaNet.name] = gated_delta_names(llama_names(config).in_layer);
    linear.output = "linear_attn.o_proj";
    LayerNames published = linear;
    published.sign = "attention_layer_norm.weight";
    published.input_norm = "attention_layer_norm";
    published.feed_forward_norm = "feedforward_layer_norm";
    linear.others = {published};
    LayerNames written = names.in_layer;  // as transformers writes what it read of those
    written.sign = "feedforward_layer_norm.weight";
    written.attention_update_norm = "feedforward_layer_norm";
    names.in_layer.others = {written};
    return names;
}

}  // namespace

const Family kOlmoHybrid{"olmo_hybrid",
                         {"olmo_hybrid"},
                         "OLMo Hybrid: Gated DeltaNet on three layers of four, the others as in OLMo 3",
                         read,
                         names};

}  // namespace headscope::model
