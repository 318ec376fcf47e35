// SPDX-License-Identifier: GPL-3.0-or-later
// DeepSeek-V2 (arXiv 2405.04434): latent attention, and after some plain layers a mixture of small experts beside ones
// that every token has.
#include <cmath>

#include "core/model/families/families.h"

namespace headscope::model {
namespace {

/// More than any file has, of a product of two of its sizes.
constexpr std::int64_t kWidest = std::int64_t{1} << 31;

/// YaRN's factor on the scores, which transformers takes from any kind of scaling that has the number.
double read_score_factor(const ConfigReader& reader, const RopeConfig& rope) {
    const bool old = reader.has("rope_scaling") && !reader.is_empty_object("rope_scaling");
    const auto scaling = reader.object(old ? "rope_scaling" : "rope_parameters");
    const double weight = scaling && rope.type != "default" ? scaling->number("mscale_all_dim", 0) : 0;
    if (weight == 0) return 1;
    if (!scaling->has("factor")) scaling->refuse("factor", "a number beside mscale_all_dim");
    const double factor = scaling->positive("factor", 1);
    const double magnitude = factor <= 1 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
    return magnitude * magnitude;
}

}  // namespace

ModelConfig read_latent_attention(const ConfigReader& reader, const SizeDefaults& defaults,
                                  std::int64_t default_positions) {
    const std::int64_t turning = reader.size("qk_rope_head_dim", 64);
    SizeDefaults sizes = defaults;
    sizes.head_size = reader.size("qk_nope_head_dim", 128) + turning;
    ModelConfig config;
    SizeKeys keys = deepseek_names(config).keys;
    read_sizes(config, reader, keys, sizes);
    if (config.key_value_heads != config.heads)
        reader.unsupported(keys.key_value_heads, "as many as " + keys.heads + ", which share one latent part");
    read_llama_choices(config, reader, default_positions);
    config.feed_forward_bias = false;
    config.value_size = reader.size("v_head_dim", 128);
    if (config.heads * config.value_size > kWidest)
        reader.refuse("v_head_dim", "heads of at most 2^31 numbers together");
    config.key_value_rank = reader.size("kv_lora_rank", 512);
    config.query_rank = reader.is_null("q_lora_rank") ? 0 : reader.size("q_lora_rank", 1536);
    config.positions = PositionKind::rotary;
    config.rope = read_rope(reader, config.max_positions, turning);
    if (config.rope.type == "default") config.rope.partial = 1.0;
    if (config.rope.partial != 1) reader.unsupported("partial_rotary_factor", "1: qk_rope_head_dim is what turns");
    config.rope.size = turning;
    config.rope.interleaved = true;
    config.attention_scale = read_score_factor(reader, config.rope) / std::sqrt(static_cast<double>(config.head_size));
    return config;
}

void read_deepseek_experts(ModelConfig& config, const ConfigReader& reader, const std::string& key,
                           const DeepseekExperts& defaults) {
    if (defaults.per_token == 0 && !reader.has("num_experts_per_tok"))
        reader.refuse("num_experts_per_tok", "a whole number");
    read_experts(config, reader, key, defaults.experts, defaults.per_token);
    config.expert_feed_forward = reader.size("moe_intermediate_size", defaults.size);
    config.shared_expert = reader.count("n_shared_experts", defaults.shared) * config.expert_feed_forward;
    if (config.shared_expert > kWidest) reader.refuse("n_shared_experts", "at most 2^31 hidden units together");
    config.routing.scale = reader.number("routed_scaling_factor", defaults.scale);
    config.routing.wide = true;
    const std::int64_t first = reader.count("first_k_dense_replace", defaults.first_layer);
    for (std::int64_t layer = 0; layer < config.layers; ++layer) config.expert_layers.push_back(layer >= first ? 1 : 0);
}

void refuse_other_routing(const ConfigReader& reader, const std::string& scores) {
    if (reader.text("scoring_func", scores) != scores) reader.unsupported("scoring_func", scores);
    if (reader.size("moe_layer_freq", 1) != 1) reader.unsupported("moe_layer_freq", "1");
}

void read_expert_groups(ModelConfig& config, const ConfigReader& reader, std::int64_t groups,
                        std::int64_t groups_per_token, std::int64_t best_of_group) {
    ExpertRouting& routing = config.routing;
    routing.groups = reader.size("n_group", groups);
    routing.groups_per_token = reader.size("topk_group", groups_per_token);
    routing.best_of_group = best_of_group;
    const std::int64_t size = config.experts / routing.groups;
    if (config.experts % routing.groups != 0 || size < best_of_group) {
        reader.refuse("n_group", "a divisor of the " + std::to_string(config.experts) + " experts, and " +
                                     std::to_string(best_of_group) + " or more in a group");
    }
    if (routing.groups_per_token > routing.groups) reader.refuse("topk_group", "no more than there are groups");
    if (config.experts_per_token > routing.groups_per_token * size)
        reader.refuse("num_experts_per_tok", "no more than topk_group groups have");
}

void name_deepseek_experts(TensorNames& names) {
    name_qwen_experts(names);
    for (ExpertNames& experts : names.in_layer.experts) experts.choice_bias = "mlp.gate.e_score_correction_bias";
    names.in_layer.shared_gate = "mlp.shared_experts.gate_proj";
    names.in_layer.shared_up = "mlp.shared_experts.up_proj";
    names.in_layer.shared_down = "mlp.shared_experts.down_proj";
    names.keys.experts = "n_routed_experts";
    names.keys.shared_expert = "n_shared_experts * moe_intermediate_size";
}

TensorNames deepseek_names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    name_deepseek_experts(names);
    names.keys.head_size = "(qk_nope_head_dim + qk_rope_head_dim)";
    return names;
}

namespace {

ModelConfig read(const ConfigReader& reader) {
    refuse_other_routing(reader, "softmax");
    ModelConfig config = read_latent_attention(reader, {}, 2048);
    config.feed_forward_bias = reader.boolean("mlp_bias", false);
    read_deepseek_experts(config, reader, present_key(reader, {"num_experts", "n_routed_experts"}),
                          {64, 0, 1407, 2, 0, 1.0});
    // transformers reads norm_topk_prob and does not divide.
    config.expert_shares_of_chosen = false;
    const std::string method = "topk_method";
    const std::string chosen = reader.is_null(method) ? "" : reader.text(method, "greedy");
    if (chosen == "group_limited_greedy") {
        for (const char* key : {"n_group", "topk_group"})
            if (!reader.has(key)) reader.refuse(key, "a whole number for " + chosen);
        read_expert_groups(config, reader, 1, 1, 1);
    } else if (chosen != "greedy") {
        reader.unsupported(method, "greedy or group_limited_greedy");
    }
    return config;
}

}  // namespace

const Family kDeepseekV2{"deepseek_v2",
                         {"deepseek_v2"},
                         "DeepSeek-V2: latent attention, and a mixture of experts in groups",
                         read,
                         deepseek_names};

}  // namespace headscope::model
