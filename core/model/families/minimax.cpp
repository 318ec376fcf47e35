// SPDX-License-Identifier: GPL-3.0-or-later
// MiniMax-Text-01 and M1 (arXiv 2501.08313), in transformers' form: Mixtral with lightning attention in some layers,
// whose residual stream is what norms return, and sums with factors.
#include "core/mixers/types/lightning.h"
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

SumFactors read_sum(const ConfigReader& reader, const std::string& part) {
    return {reader.number(part + "_alpha_factor", 1), reader.number(part + "_beta_factor", 1)};
}

ModelConfig read(const ConfigReader& reader) {
    const SizeDefaults sizes{8, 0, 32'000, 4096, 32, 32, 14336};
    RopeDefaults rope;
    rope.theta = 1'000'000.0;
    ModelConfig config = read_llama(reader, 131'072, sizes, rope);
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = false;
    config.residual_after_norm = true;
    if (config.activation != Activation::silu)
        reader.unsupported("hidden_act",
                           "silu, which is what queries, keys and values of lightning attention go through");
    if (const std::int64_t window = read_window(reader, 0); window > 0)
        config.windows.assign(static_cast<std::size_t>(config.layers), window);
    read_experts(config, reader, present_key(reader, {"num_experts", "num_local_experts"}), 8, 2);
    read_linear_layers(config, reader, mixers::kLightning, [](std::int64_t layer) { return layer % 2 == 0; });
    const SumFactors softmax = read_sum(reader, "full_attn"), linear = read_sum(reader, "linear_attn");
    for (const std::string& mixer : config.mixers)
        config.attention_sums.push_back(mixer == mixers::kLightning.name ? linear : softmax);
    config.feed_forward_sum = read_sum(reader, "mlp");
    config.recurrent_norm_epsilon = 1e-6;
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    name_mixtral_experts(names);
    LayerNames& linear = names.of_mixer[mixers::kLightning.name] = names.in_layer;
    linear.recurrent.query_key_value_by_head = "qkv_proj";
    linear.recurrent.gate = "output_gate";
    linear.recurrent.norm = "norm";
    linear.recurrent.keys.key_rows = linear.recurrent.keys.value_rows = names.keys.heads + " * " + names.keys.head_size;
    linear.output = "self_attn.out_proj";
    names.buffers.insert(names.buffers.end(), {"slope_rate", "query_decay", "key_decay", "diagonal_decay"});
    return names;
}

}  // namespace

const Family kMiniMax{"minimax",
                      {"minimax"},
                      "MiniMax-Text-01, M1: lightning attention in most layers, a mixture of experts",
                      read,
                      names};

}  // namespace headscope::model
