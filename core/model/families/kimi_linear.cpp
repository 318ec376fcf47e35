// SPDX-License-Identifier: GPL-3.0-or-later
// Kimi Linear (arXiv 2510.26692): Kimi delta attention in three layers of four, DeepSeek's latent attention without
// positions in the others, and its experts.
#include <algorithm>

#include "core/mixers/types/kimi_delta.h"
#include "core/mixers/types/standard.h"
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

using mixers::kKimiDelta;

/// As published: two lists of layers, counted from 1.
void read_listed_layers(ModelConfig& config, const ConfigReader& said) {
    std::vector<std::string> kinds(static_cast<std::size_t>(config.layers));
    const auto enter = [&](const std::string& key, const std::string& kind) {
        for (const double number : said.numbers(key)) {
            const auto layer =
                number >= 1 && number <= static_cast<double>(config.layers) ? static_cast<std::int64_t>(number) : 0;
            if (layer < 1 || static_cast<double>(layer) != number ||
                !kinds.at(static_cast<std::size_t>(layer - 1)).empty())
                said.refuse(key, "layers from 1 to " + std::to_string(config.layers) + ", each in one list");
            kinds[static_cast<std::size_t>(layer - 1)] = kind;
        }
    };
    enter("full_attn_layers", mixers::kStandard.name);
    enter("kda_layers", kKimiDelta.name);
    if (std::count(kinds.begin(), kinds.end(), "") != 0)
        said.refuse("kda_layers", "every layer that full_attn_layers has not");
    config.mixers = kinds;
}

void read_heads(ModelConfig& config, const ConfigReader& reader) {
    const auto listed = reader.object("linear_attn_config");
    const auto size = [&](const std::string& own, const std::string& inside, std::int64_t otherwise,
                          std::int64_t most) {
        const bool nested = listed && listed->has(inside);
        const std::int64_t value = nested ? listed->size(inside) : reader.size(own, otherwise);
        if (value > most) (nested ? *listed : reader).refuse(nested ? inside : own, "at most " + std::to_string(most));
        return value;
    };
    auto& options = config.mixer_options;
    options.set(kKimiDelta, "num_heads", size("linear_num_heads", "num_heads", 32, kMostHeads));
    options.set(kKimiDelta, "head_dim", size("linear_head_dim", "head_dim", 128, 65'536));
    options.set(kKimiDelta, "conv_size", size("linear_conv_kernel_dim", "short_conv_kernel_size", 4, 64));
    const bool lists = listed && listed->has("full_attn_layers") && listed->has("kda_layers");
    if (lists && !reader.has("layer_types")) return read_listed_layers(config, *listed);
    read_linear_layers(config, reader, kKimiDelta, [](std::int64_t layer) { return layer > 0 && layer % 4 == 0; });
}

/// The experts by the names that Moonshot's files have, and by those of DeepSeek's.
void read_mixture(ModelConfig& config, const ConfigReader& reader) {
    const auto key = [&](const char* own, const char* other) { return present_key(reader, {own, other}); };
    const std::string experts = key("num_experts", "num_local_experts");
    const std::string per_token = key("num_experts_per_token", "num_experts_per_tok");
    const std::string groups = key("num_expert_group", "n_group"),
                      shared = key("num_shared_experts", "n_shared_experts");
    config.experts = reader.size(experts, 256);
    if (config.layers * config.experts > kMostHeads)
        reader.refuse(experts, "at most " + std::to_string(kMostHeads) + " experts, of all layers");
    config.experts_per_token = reader.size(per_token, 8);
    config.expert_feed_forward = reader.size("moe_intermediate_size", 1024);
    config.shared_expert = reader.count(shared, 1) * config.expert_feed_forward;
    ExpertRouting& routing = config.routing;
    routing.sigmoid = routing.choice_bias = routing.wide = true;
    routing.scale = reader.number("routed_scaling_factor", 2.446);
    routing.groups = reader.size(groups, 1);
    routing.groups_per_token = reader.size("topk_group", 1);
    routing.best_of_group = 2;
    const std::int64_t size = config.experts / routing.groups;
    if (config.experts % routing.groups != 0 || size < 2)
        reader.refuse(groups,
                      "a divisor of the " + std::to_string(config.experts) + " experts, and 2 or more in a group");
    if (routing.groups_per_token > routing.groups) reader.refuse("topk_group", "no more than there are groups");
    if (config.experts_per_token > routing.groups_per_token * size)
        reader.refuse(per_token, "no more than topk_group groups have");
    const std::string shares = key("moe_renormalize", "norm_topk_prob");
    config.expert_shares_of_chosen = !reader.is_null(shares) && reader.boolean(shares, true);
    const std::vector<std::string> kinds = reader.texts("mlp_layer_types");
    if (!kinds.empty() && static_cast<std::int64_t>(kinds.size()) != config.layers)
        reader.refuse("mlp_layer_types", "a list of " + std::to_string(config.layers) + ", one for each layer");
    const std::int64_t first = reader.count("first_k_dense_replace", 1);
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
        const std::string type =
            kinds.empty() ? (layer < first ? "dense" : "sparse") : kinds[static_cast<std::size_t>(layer)];
        if (type != "dense" && type != "sparse")
            reader.unsupported("mlp_layer_types", "dense or sparse for each layer");
        config.expert_layers.push_back(type == "sparse" ? 1 : 0);
    }
}

/// Settings that the published code reads and transformers does not.
void refuse_others(const ConfigReader& reader) {
    if (!reader.boolean("mla_use_nope", true)) reader.unsupported("mla_use_nope", "true or absent");
    if (reader.text("moe_router_activation_func", "sigmoid") != "sigmoid")
        reader.unsupported("moe_router_activation_func", "sigmoid");
    if (reader.size("moe_layer_freq", 1) != 1) reader.unsupported("moe_layer_freq", "1");
}

ModelConfig read(const ConfigReader& reader) {
    refuse_others(reader);
    const SizeDefaults sizes{32, 0, 163'840, 2304, 27, 32, 9216};
    ModelConfig config = read_latent_attention(reader, sizes, 1'048'576);
    config.max_positions = reader.size(present_key(reader, {"model_max_length", SizeKeys().positions}), 1'048'576);
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    config.query_rank = reader.has("q_lora_rank") ? reader.size("q_lora_rank") : 0;
    config.positions = PositionKind::none;
    config.attention_scale = 0;
    if (config.activation != Activation::silu)
        reader.unsupported("hidden_act", "silu, which is what the convolution's numbers go through");
    read_heads(config, reader);
    read_mixture(config, reader);
    return config;
}

void name_shared_expert(LayerNames& names, const std::string& stem) {
    names.shared_gate = stem + "shared_experts.gate_proj";
    names.shared_up = stem + "shared_experts.up_proj";
    names.shared_down = stem + "shared_experts.down_proj";
}

/// As transformers writes a layer without experts.
LayerNames with_plain_layer_renamed(const LayerNames& names) {
    LayerNames renamed = names;
    renamed.sign = "block_sparse_moe.gate_proj.weight";
    renamed.gate = "block_sparse_moe.gate_proj";
    renamed.up = "block_sparse_moe.up_proj";
    renamed.down = "block_sparse_moe.down_proj";
    return renamed;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = deepseek_names(config);
    names.keys.positions = "model_max_length";
    names.keys.experts = "num_experts";
    names.keys.shared_expert = "num_shared_experts * moe_intermediate_size";
    name_mixtral_experts(names);  // by both names
    for (ExpertNames& experts : names.in_layer.experts)
        experts.choice_bias = experts.router + ".e_score_correction_bias";
    name_shared_expert(names.in_layer, "block_sparse_moe.");
    LayerNames linear = names.in_layer;
    linear.recurrent.taps = "conv1d";
    linear.recurrent.keys = {"linear_num_heads * linear_head_dim",
                             "linear_num_heads * linear_head_dim",
                             "linear_num_heads",
                             "linear_head_dim",
                             "linear_conv_kernel_dim",
                             "linear_head_dim"};
    linear.plain_output = true;
    LayerNames computed = linear;  // as transformers has them inside
    computed.sign = "self_attn.forget_gate.A_log";
    for (std::string* name : {&computed.recurrent.few_of_decay, &computed.recurrent.decay_of_few,
                              &computed.recurrent.rate_log, &computed.recurrent.step_bias})
        name->insert(0, "forget_gate.");
    name_shared_expert(computed, "mlp.");
    linear.others = {computed, with_plain_layer_renamed(linear)};
    LayerNames latent = names.in_layer;
    latent.sign = "mlp.gate.weight";
    name_shared_expert(latent, "mlp.");
    names.in_layer.others = {latent, with_plain_layer_renamed(names.in_layer)};
    names.of_mixer[kKimiDelta.name] = linear;
    return names;
}

}  // namespace

const Family kKimiLinear{"kimi_linear",
                         {"kimi_linear"},
                         "Kimi Linear: Kimi delta attention in three layers of four, latent attention, experts",
                         read,
                         names};

}  // namespace headscope::model
