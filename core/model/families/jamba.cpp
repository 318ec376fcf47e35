// SPDX-License-Identifier: GPL-3.0-or-later
// Jamba (AI21, arXiv 2403.19887): Mamba in most layers, grouped attention without positions in every eighth, a mixture
// of experts in every second.
#include "core/mixers/types/selective_scan.h"
#include "core/mixers/types/standard.h"
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

/// 1 for each layer whose number, after division by the period, leaves the offset.
std::vector<std::int64_t> read_every(const ConfigReader& reader, std::int64_t layers, const std::string& name,
                                     std::int64_t period_otherwise, std::int64_t offset_otherwise) {
    const std::int64_t period = reader.size(name + "_period", period_otherwise);
    const std::int64_t offset = reader.count(name + "_offset", offset_otherwise);
    if (offset >= period) reader.refuse(name + "_offset", "less than " + name + "_period");
    std::vector<std::int64_t> chosen;
    for (std::int64_t layer = 0; layer < layers; ++layer) chosen.push_back(layer % period == offset ? 1 : 0);
    return chosen;
}

void read_scan(ModelConfig& config, const ConfigReader& reader) {
    constexpr std::int64_t largest = 65'536;
    if (!reader.boolean("mamba_inner_layernorms", true)) reader.unsupported("mamba_inner_layernorms", "true or absent");
    SelectiveScanConfig& own = config.selective_scan;
    own.channels = reader.size("mamba_expand", 2) * config.hidden;
    if (own.channels > kMostHeads)
        reader.refuse("mamba_expand", "hidden_size times that to be at most " + std::to_string(kMostHeads));
    own.state_size = reader.size("mamba_d_state", 16);
    if (own.state_size > largest) reader.refuse("mamba_d_state", "at most " + std::to_string(largest));
    own.rank = (config.hidden + 15) / 16;
    if (!reader.has_text("mamba_dt_rank"))
        own.rank = reader.size("mamba_dt_rank", own.rank);
    else if (reader.text("mamba_dt_rank", "") != "auto")
        reader.refuse("mamba_dt_rank", "a number or \"auto\"");
    own.taps = reader.size("mamba_d_conv", 4);
    if (own.taps > 64) reader.refuse("mamba_d_conv", "at most 64");
    own.taps_bias = reader.boolean("mamba_conv_bias", true);
    own.input_bias = config.output_bias = reader.boolean("mamba_proj_bias", false);
}

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_llama_without_positions(reader, 262'144, {8, 0, 65'536, 4096, 32, 32, 14'336});
    config.query_key_value_bias = config.feed_forward_bias = false;
    if (config.activation != Activation::silu)
        reader.unsupported("hidden_act", "silu, which is what the convolution's numbers go through");
    for (const std::int64_t attends : read_every(reader, config.layers, "attn_layer", 8, 4))
        config.mixers.emplace_back(attends != 0 ? mixers::kStandard.name : mixers::kSelectiveScan.name);
    read_scan(config, reader);
    // transformers prefers this one of the two.
    const std::string experts = present_key(reader, {"num_local_experts", "num_experts"});
    const std::vector<std::int64_t> routed = read_every(reader, config.layers, "expert_layer", 2, 1);
    if (reader.count(experts, 16) < 2) return config;
    read_experts(config, reader, experts, 16, 2);
    config.expert_layers = routed;
    config.expert_shares_of_chosen = false;
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    names.keys.experts = "num_experts";
    LayerNames& softmax = names.in_layer;
    softmax.plain_output = true;
    softmax.feed_forward_norm = "pre_ff_layernorm";
    softmax.gate = "feed_forward.gate_proj";
    softmax.up = "feed_forward.up_proj";
    softmax.down = "feed_forward.down_proj";
    ExpertNames each, stacked;
    each.router = stacked.router = "feed_forward.router";
    each.gate = "feed_forward.experts.{}.gate_proj";
    each.up = "feed_forward.experts.{}.up_proj";
    each.down = "feed_forward.experts.{}.down_proj";
    stacked.gate_up = "feed_forward.experts.gate_up_proj";
    stacked.down = "feed_forward.experts.down_proj";
    softmax.experts = {each, stacked};
    LayerNames& scan = names.of_mixer[mixers::kSelectiveScan.name] = softmax;
    scan.recurrent.stem = "mamba.";
    scan.output = "mamba.out_proj";
    scan.plain_output = false;
    names.final_norm = "final_layernorm";
    return names;
}

}  // namespace

const Family kJamba{
    "jamba", {"jamba"}, "Jamba: Mamba in most layers, grouped attention, experts in every second layer", read, names};

}  // namespace headscope::model
