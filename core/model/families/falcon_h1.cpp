// SPDX-License-Identifier: GPL-3.0-or-later
// Falcon-H1 (arXiv 2507.22448): in every layer softmax attention and Mamba2 side by side, and factors of almost
// everything.
#include <cmath>

#include "core/mixers/types/side_by_side.h"
#include "core/model/families/families.h"

namespace headscope::model {

RecurrentNames mamba2_names(const std::string& stem, const Mamba2Keys& keys) {
    RecurrentNames names;
    names.stem = stem;
    names.keys.heads = keys.heads;
    names.keys.inner = keys.heads + " * " + keys.head_size;
    names.keys.groups = "2 * " + keys.groups + " * " + keys.state_size;
    names.keys.taps = keys.taps;
    return names;
}

namespace {

const Mamba2Keys kKeys{"mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_n_groups", "mamba_d_conv"};

std::vector<double> read_factors(const ConfigReader& reader, const std::string& key, std::size_t count) {
    std::vector<double> factors = reader.numbers(key);
    if (!reader.has(key)) factors.assign(count, 1.0);
    if (factors.size() != count) reader.refuse(key, std::to_string(count) + " numbers");
    return factors;
}

void read_state_space(ModelConfig& config, const ConfigReader& reader) {
    const std::int64_t heads = reader.size(kKeys.heads, 128);
    const bool wide = reader.is_null("mamba_d_ssm");
    const std::int64_t inner = wide ? reader.size("mamba_expand", 2) * config.hidden : reader.size("mamba_d_ssm", 1024);
    const std::string inner_key = wide ? "mamba_expand" : "mamba_d_ssm";
    if (inner % heads != 0) reader.refuse(inner_key, "a multiple of mamba_n_heads (" + std::to_string(heads) + ")");
    const bool by_rule = reader.has_text(kKeys.head_size);
    if (by_rule && reader.text(kKeys.head_size, "") != "auto") reader.refuse(kKeys.head_size, "a number or \"auto\"");
    if (!by_rule && reader.size(kKeys.head_size, inner / heads) != inner / heads)
        reader.refuse(kKeys.head_size, std::to_string(inner / heads) + ", as " + inner_key + " has it");
    set_mamba2_heads(config, reader,
                     {heads, inner / heads, reader.size(kKeys.state_size, 256), reader.size(kKeys.groups, 1),
                      reader.size(kKeys.taps, 4)},
                     kKeys.groups);
    StateSpaceConfig& own = config.state_space;
    own.projection_bias = reader.boolean("mamba_proj_bias", false);
    own.taps_bias = reader.boolean("mamba_conv_bias", true);
    own.normed = reader.boolean("mamba_rms_norm", false);
    own.norm_first = reader.boolean("mamba_norm_before_gate", true);
    own.factors = read_factors(reader, "ssm_multipliers", 5);
    read_step_limit(config, reader, "time_step_limit");
}

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_llama(reader, 8192, {8, 0, 128'000, 4096, 32, 32, 14'336});
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    if (config.activation != Activation::silu)
        reader.unsupported("hidden_act", "silu, which is what the convolution's numbers go through");
    config.mixers.assign(static_cast<std::size_t>(config.layers), mixers::kSideBySide.name);
    config.embedding_scale = reader.number("embedding_multiplier", 1);
    config.head_scale = reader.number("lm_head_multiplier", 1);
    // What keys are multiplied by, their scores are.
    config.attention_scale = reader.positive("key_multiplier", 1) / std::sqrt(static_cast<double>(config.head_size));
    const std::vector<double> inside = read_factors(reader, "mlp_multipliers", 2);
    config.gate_scale = inside[0];
    config.feed_forward_sum.added = inside[1];
    BranchFactors& factors = config.branch_factors;
    factors.attention_in = reader.number("attention_in_multiplier", 1);
    factors.attention_out = reader.number("attention_out_multiplier", 1);
    factors.state_in = reader.number("ssm_in_multiplier", 1);
    factors.state_out = reader.number("ssm_out_multiplier", 1);
    factors.state_bias = reader.boolean("projectors_bias", false);
    read_state_space(config, reader);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    LayerNames& layer = names.in_layer;
    layer.output = "";  // the mixer has two
    layer.feed_forward_norm = "pre_ff_layernorm";
    layer.gate = "feed_forward.gate_proj";
    layer.up = "feed_forward.up_proj";
    layer.down = "feed_forward.down_proj";
    layer.recurrent = mamba2_names("mamba.", kKeys);
    names.final_norm = "final_layernorm";
    names.buffers.emplace_back("mup_vector");
    return names;
}

}  // namespace

const Family kFalconH1{
    "falcon_h1", {"falcon_h1"}, "Falcon-H1: softmax attention and Mamba2 side by side in every layer", read, names};

}  // namespace headscope::model
