// SPDX-License-Identifier: GPL-3.0-or-later
// Qwen3-Next (Qwen team, 2025): Gated DeltaNet on three layers of four, softmax attention with a gate on the others, of
// whose heads a part turns; gains of norms are 1 + w, and experts beside one that every token has.
#include "core/mixers/types/gated_deltanet.h"
#include "core/mixers/types/standard.h"
#include "core/model/families/families.h"

namespace headscope::model {

using mixers::kGatedDeltaNet;

void read_linear_layers(ModelConfig& config, const ConfigReader& reader, const mixers::MixerType& mixer,
                        const std::function<bool(std::int64_t layer)>& softmax, const std::string& key) {
    std::vector<std::string> types = reader.texts(key);
    if (reader.has(key) && static_cast<std::int64_t>(types.size()) != config.layers)
        reader.refuse(key, "a list of " + std::to_string(config.layers) + ", one for each layer");
    for (std::string& type : types) {
        // The words that transformers had before, and reads in every family's list.
        if (type == "mamba") type = "linear_attention";
        if (type == "attention") type = "full_attention";
        if (type != "linear_attention" && type != "full_attention")
            reader.unsupported(key, "linear_attention (or mamba) or full_attention (or attention) for each layer");
    }
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
        const bool full = types.empty() ? softmax(layer) : types[static_cast<std::size_t>(layer)] == "full_attention";
        config.mixers.emplace_back(full ? mixers::kStandard.name : mixer.name);
    }
}

void read_gated_delta_heads(ModelConfig& config, const ConfigReader& reader, const LinearHeads& defaults) {
    const std::int64_t key_heads = reader.size("linear_num_key_heads", defaults.key_heads);
    const std::int64_t heads = reader.size("linear_num_value_heads", defaults.heads);
    const std::int64_t key_size = reader.size("linear_key_head_dim", defaults.key_size);
    const std::int64_t value_size =
        reader.size("linear_value_head_dim", defaults.value_size > 0 ? defaults.value_size : 2 * key_size);
    constexpr std::int64_t largest = 65'536;
    if (heads % key_heads != 0 || heads > kMostHeads) {
        reader.refuse("linear_num_value_heads",
                      "a multiple of linear_num_key_heads (" + std::to_string(key_heads) + ")");
    }
    if (key_size > largest) reader.refuse("linear_key_head_dim", "at most " + std::to_string(largest));
    if (value_size > largest) reader.refuse("linear_value_head_dim", "at most " + std::to_string(largest));
    const std::int64_t taps = reader.size("linear_conv_kernel_dim", 4);
    if (taps > 64) reader.refuse("linear_conv_kernel_dim", "at most 64");
    if (config.activation != Activation::silu)
        reader.unsupported("hidden_act", "silu, which is what the convolution's numbers go through");
    auto& options = config.mixer_options;
    options.set(kGatedDeltaNet, "num_heads", key_heads);
    options.set(kGatedDeltaNet, "num_value_heads", heads);
    options.set(kGatedDeltaNet, "head_dim", key_size);
    options.set(kGatedDeltaNet, "expand_v", static_cast<double>(value_size) / static_cast<double>(key_size));
    options.set(kGatedDeltaNet, "conv_size", taps);
}

LayerNames gated_delta_names(const LayerNames& softmax) {
    LayerNames names = softmax;
    names.recurrent.stem = "linear_attn.";
    names.recurrent.taps = "conv1d";
    names.recurrent.keys = {"linear_num_key_heads * linear_key_head_dim",
                            "linear_num_value_heads * linear_value_head_dim",
                            "linear_num_value_heads",
                            "linear_value_head_dim",
                            "linear_conv_kernel_dim",
                            "linear_key_head_dim"};
    names.plain_output = true;
    return names;
}

ModelConfig read_qwen_hybrid(const ConfigReader& reader, const SizeDefaults& sizes) {
    ModelConfig config = read_llama_without_positions(reader, 32768, sizes);
    config.feed_forward_bias = false;
    config.query_key_norm = QueryKeyNorm::each_head;
    config.norm_gain_offset = 1.0;
    config.attention_gate = true;
    config.positions = PositionKind::rotary;
    RopeDefaults rope;
    rope.partial = reader.is_null(rope.partial_key) ? 1.0 : 0.25;
    config.rope = read_rope(reader, config.max_positions, config.head_size, rope);
    const std::int64_t every = reader.size("full_attention_interval", 4);
    read_linear_layers(config, reader, kGatedDeltaNet,
                       [every](std::int64_t layer) { return (layer + 1) % every == 0; });
    read_gated_delta_heads(config, reader, {16, 32, 128, 128});
    return config;
}

void name_shared_qwen_expert(TensorNames& names) {
    names.in_layer.shared_gate = "mlp.shared_expert.gate_proj";
    names.in_layer.shared_up = "mlp.shared_expert.up_proj";
    names.in_layer.shared_down = "mlp.shared_expert.down_proj";
    names.in_layer.shared_share = "mlp.shared_expert_gate";
}

namespace {

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_qwen_hybrid(reader, {2, 256, 151'936, 2048, 48, 16, 5632});
    read_qwen_experts(config, reader, "num_experts", 512, 10, 512);
    config.expert_shares_of_chosen = !reader.is_null("norm_topk_prob") && reader.boolean("norm_topk_prob", true);
    config.shared_expert = reader.size("shared_expert_intermediate_size", 512);
    config.shared_expert_gated = true;
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.in_layer.query_norm = "self_attn.q_norm";
    names.in_layer.key_norm = "self_attn.k_norm";
    name_qwen_experts(names);
    name_shared_qwen_expert(names);
    LayerNames& linear = names.of_mixer[kGatedDeltaNet.name] = gated_delta_names(names.in_layer);
    linear.recurrent.query_key_value_gate = "in_proj_qkvz";
    linear.recurrent.write_decay = "in_proj_ba";
    linear.recurrent.norm = "norm";
    linear.output = "linear_attn.out_proj";
    return names;
}

}  // namespace

const Family kQwen3Next{"qwen3_next",
                        {"qwen3_next"},
                        "Qwen3-Next: Gated DeltaNet on three layers of four, attention with a gate, experts",
                        read,
                        names};

}  // namespace headscope::model
