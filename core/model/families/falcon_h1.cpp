// SPDX-License-Identifier: GPL-3.0-or-later
// Falcon-H1 (arXiv 2507.22448): in every layer softmax attention and Mamba2 side by side, and factors of almost
// everything.
#include <cmath>

#include "core/mixers/types/side_by_side.h"
#include "core/model/families/families.h"

namespace headscope::model {

namespace {

std::vector<double> read_factors(const ConfigReader& reader, const std::string& key, std::size_t count) {
    std::vector<double> factors = reader.numbers(key);
    if (!reader.has(key)) factors.assign(count, 1.0);
    if (factors.size() != count) reader.refuse(key, std::to_string(count) + " numbers");
    return factors;
}

void read_state_space(ModelConfig& config, const ConfigReader& reader) {
    const bool wide = reader.is_null("mamba_d_ssm");
    const std::int64_t inner = wide ? reader.size("mamba_expand", 2) * config.hidden : reader.size("mamba_d_ssm", 1024);
    read_mamba2_sizes(config, reader, inner, wide ? "mamba_expand" : "mamba_d_ssm");
    StateSpaceConfig& own = config.state_space;
    own.normed = reader.boolean("mamba_rms_norm", false);
    own.norm_first = !reader.is_null("mamba_norm_before_gate") && reader.boolean("mamba_norm_before_gate", true);
    own.factors = read_factors(reader, "ssm_multipliers", 5);
}

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_llama(reader, 8192, {8, 0, 128'000, 4096, 32, 32, 14'336});
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    config.mixers.assign(static_cast<std::size_t>(config.layers), mixers::kSideBySide.name);
    config.embedding_scale = reader.number("embedding_multiplier", 1);
    config.head_scale = reader.number("lm_head_multiplier", 1);
    // A factor on keys is a factor on scores.
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
    layer.recurrent = mamba2_names("mamba.", kMambaKeys);
    names.final_norm = "final_layernorm";
    return names;
}

}  // namespace

const Family kFalconH1{
    "falcon_h1", {"falcon_h1"}, "Falcon-H1: softmax attention and Mamba2 side by side in every layer", read, names};

}  // namespace headscope::model
