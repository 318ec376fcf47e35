// SPDX-License-Identifier: GPL-3.0-or-later
// Nemotron-H (arXiv 2504.03624) and Nemotron 3: every layer is a norm and one thing, which is Mamba2, softmax attention
// without positions, a feed-forward or a mixture of experts; these two without gates, with squared ReLU.
#include "core/mixers/types/mamba2.h"
#include "core/mixers/types/standard.h"
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

const Mamba2Keys kKeys{"mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel"};

/// By the words of transformers 5, those before them, and the letters that NVIDIA publishes.
enum class Kind { state, attention, feed_forward, experts };

Kind kind_of(const ConfigReader& reader, const std::string& key, const std::string& name) {
    if (name == "linear_attention" || name == "mamba" || name == "M") return Kind::state;
    if (name == "full_attention" || name == "attention" || name == "*") return Kind::attention;
    if (name == "mlp" || name == "-") return Kind::feed_forward;
    if (name == "moe" || name == "E") return Kind::experts;
    reader.unsupported(key, "linear_attention (M), full_attention (*), mlp (-) or moe (E) for each layer");
}

std::vector<Kind> read_kinds(const ConfigReader& reader) {
    const std::string pattern = "hybrid_override_pattern";
    const std::string list = present_key(reader, {"layer_types", "layers_block_type", pattern});
    std::vector<std::string> names;
    if (list != pattern) {
        names = reader.texts(list);
    } else if (reader.has(pattern)) {
        for (const char letter : reader.text(pattern, "")) names.emplace_back(1, letter);
    } else {
        names = {"linear_attention", "moe", "full_attention", "mlp"};
    }
    if (names.empty() || static_cast<std::int64_t>(names.size()) > kMostLayers)
        reader.refuse(list, "from 1 to " + std::to_string(kMostLayers) + " layers");
    std::vector<Kind> kinds;
    for (const std::string& name : names) kinds.push_back(kind_of(reader, list, name));
    return kinds;
}

void read_layers(ModelConfig& config, const std::vector<Kind>& kinds) {
    for (const Kind kind : kinds) {
        config.mixers.emplace_back(kind == Kind::state       ? mixers::kMamba2.name
                                   : kind == Kind::attention ? mixers::kStandard.name
                                                             : kNoMixer);
        config.feed_forward_layers.push_back(kind == Kind::feed_forward || kind == Kind::experts ? 1 : 0);
        config.expert_layers.push_back(kind == Kind::experts ? 1 : 0);
    }
}

void read_mixture(ModelConfig& config, const ConfigReader& reader) {
    if (reader.has("moe_latent_size")) reader.unsupported("moe_latent_size", "none: experts of the hidden size");
    read_experts(config, reader, present_key(reader, {"num_local_experts", "n_routed_experts"}), 8, 2);
    config.expert_feed_forward = reader.size("moe_intermediate_size", 7688);
    config.shared_expert = reader.size("moe_shared_expert_intermediate_size", 7688);
    config.routing.scale = reader.number("routed_scaling_factor", 1);
    config.routing.wide = true;
    read_sigmoid_routing(config, reader, 1, 1);
    config.further_layers = 0;  // those that predict further tokens are not numbered among the others
}

ModelConfig read(const ConfigReader& reader) {
    const std::vector<Kind> kinds = read_kinds(reader);
    ModelConfig config;
    SizeDefaults sizes{8, 128, 131'072, 4096, 1, 32, 21'504};
    read_sizes(config, reader, SizeKeys(), sizes);
    config.layers = static_cast<std::int64_t>(kinds.size());
    read_layers(config, kinds);
    config.max_positions = reader.size(SizeKeys().positions, 4096);
    config.positions = PositionKind::none;
    config.norm = NormKind::rms;
    config.norm_epsilon = reader.positive("layer_norm_epsilon", 1e-5);
    config.activation = read_activation(reader, "mlp_hidden_act", "relu2");
    config.gated_feed_forward = false;
    config.feed_forward_bias = reader.boolean("mlp_bias", false);
    config.tied_head = reader.boolean("tie_word_embeddings", false);
    const double deviation = reader.number("initializer_range", config.initializer_range);
    if (deviation > 0) config.initializer_range = deviation;
    if (read_activation(reader, "mamba_hidden_act", "silu") != Activation::silu)
        reader.unsupported("mamba_hidden_act", "silu");
    // As transformers, by these names where the file has them.
    Mamba2Keys keys = kKeys;
    keys.groups = present_key(reader, {"mamba_n_groups", kKeys.groups});
    keys.taps = present_key(reader, {"mamba_d_conv", kKeys.taps});
    set_bounded_mamba2(config, reader,
                       {reader.size(keys.heads, 128), reader.size(keys.head_size, 64),
                        reader.size(keys.state_size, 128), reader.size(keys.groups, 8), reader.size(keys.taps, 4)},
                       keys);
    StateSpaceConfig& own = config.state_space;
    own.projection_bias = config.output_bias = reader.boolean("use_bias", false);
    own.taps_bias = reader.boolean(present_key(reader, {"mamba_conv_bias", "use_conv_bias"}), true);
    // transformers asks for time_step_min, and not for time_step_limit.
    own.least_step = reader.number(present_key(reader, {"mamba_dt_min", "time_step_min"}), 0.001);
    bool mixture = false;
    for (const Kind kind : kinds) mixture = mixture || kind == Kind::experts;
    if (mixture)
        read_mixture(config, reader);
    else
        config.expert_layers.clear();
    return config;
}

TensorNames names(const ModelConfig&) {
    TensorNames names;
    names.keys.layers = "layers_block_type";
    names.keys.experts = "n_routed_experts";
    names.keys.shared_expert = "moe_shared_expert_intermediate_size";
    names.prefixes = {"backbone.", "model.", ""};
    names.token_embedding = "embeddings";
    names.layer = "layers.{}.";
    LayerNames& softmax = names.in_layer;
    softmax.input_norm = "norm";
    softmax.query = "mixer.q_proj";
    softmax.key = "mixer.k_proj";
    softmax.value = "mixer.v_proj";
    softmax.output = "mixer.o_proj";
    softmax.plain_output = true;
    LayerNames& state = names.of_mixer[mixers::kMamba2.name];
    state.input_norm = "norm";
    state.recurrent = mamba2_names("mixer.", kKeys);
    state.output = "mixer.out_proj";
    LayerNames& alone = names.of_mixer[kNoMixer];
    alone.feed_forward_norm = "norm";
    alone.up = "mixer.up_proj";
    alone.down = "mixer.down_proj";
    alone.shared_up = "mixer.shared_experts.up_proj";
    alone.shared_down = "mixer.shared_experts.down_proj";
    ExpertNames each, stacked;
    each.router = stacked.router = "mixer.gate";
    each.choice_bias = stacked.choice_bias = "mixer.gate.e_score_correction_bias";
    each.up = "mixer.experts.{}.up_proj";
    each.down = "mixer.experts.{}.down_proj";
    stacked.gate_up = "mixer.experts.up_proj";
    stacked.down = "mixer.experts.down_proj";
    alone.experts = {each, stacked};
    names.final_norm = "norm_f";
    names.head = "lm_head";
    return names;
}

}  // namespace

const Family kNemotronH{"nemotron_h",
                        {"nemotron_h"},
                        "Nemotron-H, Nemotron 3: layers of Mamba2, attention, feed-forward or experts alone",
                        read,
                        names};

}  // namespace headscope::model
