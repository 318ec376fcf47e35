// SPDX-License-Identifier: GPL-3.0-or-later
// Mamba2 (Dao and Gu, arXiv 2405.21060): blocks of a norm and the mixer alone. transformers and flash-linear-attention
// (version 0.6.0) share its model_type and the names of its tensors, not what a missing key means.
#include <cmath>

#include "core/mixers/types/mamba2.h"
#include "core/model/families/families.h"

namespace headscope::model {

void set_mamba2_heads(ModelConfig& config, const ConfigReader& reader, const Mamba2Heads& sizes,
                      const std::string& groups_key) {
    if (sizes.heads % sizes.groups != 0)
        reader.refuse(groups_key, "a divisor of the number of heads (" + std::to_string(sizes.heads) + ")");
    const auto set = [&config](const char* key, std::int64_t value) {
        config.mixer_options.set(mixers::kMamba2, key, value);
    };
    set("num_heads", sizes.heads);
    set("head_dim", sizes.head_size);
    set("state_size", sizes.state_size);
    set("num_groups", sizes.groups);
    set("conv_size", sizes.taps);
}

void set_bounded_mamba2(ModelConfig& config, const ConfigReader& reader, const Mamba2Heads& sizes,
                        const Mamba2Keys& keys) {
    constexpr std::int64_t largest = 65'536;
    const auto bound = [&reader](const std::string& key, std::int64_t size, std::int64_t most) {
        if (size > most) reader.refuse(key, "at most " + std::to_string(most));
    };
    bound(keys.heads, sizes.heads, kMostHeads);
    bound(keys.head_size, sizes.head_size, largest);
    bound(keys.state_size, sizes.state_size, largest);
    bound(keys.taps, sizes.taps, 64);
    set_mamba2_heads(config, reader, sizes, keys.groups);
}

RecurrentNames mamba2_names(const std::string& stem, const Mamba2Keys& keys) {
    RecurrentNames names;
    names.stem = stem;
    names.keys.heads = keys.heads;
    names.keys.inner = keys.heads + " * " + keys.head_size;
    names.keys.groups = "2 * " + keys.groups + " * " + keys.state_size;
    names.keys.taps = keys.taps;
    return names;
}

void read_mamba2_sizes(ModelConfig& config, const ConfigReader& reader, std::int64_t inner,
                       const std::string& inner_key) {
    const Mamba2Keys& keys = kMambaKeys;
    const std::int64_t heads = reader.size(keys.heads, 128);
    if (heads > kMostHeads) reader.refuse(keys.heads, "at most " + std::to_string(kMostHeads));
    constexpr std::int64_t widest = std::int64_t{1} << 31;
    if (inner % heads != 0 || inner > widest) {
        reader.refuse(inner_key, "a multiple of mamba_n_heads (" + std::to_string(heads) +
                                     ") in all heads together, and at most 2^31");
    }
    const bool by_rule = reader.has_text(keys.head_size);
    if (by_rule && reader.text(keys.head_size, "") != "auto") reader.refuse(keys.head_size, "a number or \"auto\"");
    if (!by_rule && reader.size(keys.head_size, inner / heads) != inner / heads)
        reader.refuse(keys.head_size, std::to_string(inner / heads) + ", as " + inner_key + " has it");
    set_bounded_mamba2(config, reader,
                       {heads, inner / heads, reader.size(keys.state_size, 256), reader.size(keys.groups, 1),
                        reader.size(keys.taps, 4)},
                       keys);
    config.state_space.projection_bias = reader.boolean("mamba_proj_bias", false);
    config.state_space.taps_bias = !reader.is_null("mamba_conv_bias") && reader.boolean("mamba_conv_bias", true);
    read_step_limit(config, reader, "time_step_limit");
    if (config.activation != Activation::silu)
        reader.unsupported("hidden_act", "silu, which is what the convolution's numbers go through");
}

void read_mamba2_layers(ModelConfig& config, const ConfigReader& reader) {
    read_mamba2_sizes(config, reader, reader.size("mamba_expand", 2) * config.hidden, "mamba_expand");
    config.output_bias = config.query_key_value_bias || config.state_space.projection_bias;
}

void name_mamba2_layers(TensorNames& names, const ModelConfig& config) {
    LayerNames& own = names.of_mixer[mixers::kMamba2.name] = names.in_layer;
    own.recurrent = mamba2_names("mamba.", kMambaKeys);
    own.output = "mamba.out_proj";
    own.plain_output = !config.state_space.projection_bias;
    names.in_layer.plain_output = !config.query_key_value_bias;
}

void read_step_limit(ModelConfig& config, const ConfigReader& reader, const std::string& key) {
    const auto limit = reader.range(key);
    if (!limit) return;
    if (limit->second <= 0) reader.refuse(key, "an end above 0");
    config.state_space.least_step = limit->first;
    config.state_space.most_step = limit->second;
}

namespace {

/// `expand` times the hidden size over `head_dim`, which num_heads must be where the file has it.
std::int64_t read_heads(const ConfigReader& reader, const ModelConfig& config, bool transformers) {
    const double inner = std::floor(static_cast<double>(config.hidden) * reader.positive("expand", 2));
    const auto whole = inner < 1e9 ? static_cast<std::int64_t>(inner) : 0;
    const std::int64_t heads = whole / config.head_size;
    if (heads < 1 || heads > kMostHeads || heads * config.head_size != whole) {
        reader.refuse("expand", "hidden_size (" + std::to_string(config.hidden) + ") times that to be at most " +
                                    std::to_string(kMostHeads) + " heads of head_dim (" +
                                    std::to_string(config.head_size) + ")");
    }
    // flash-linear-attention writes the number, and 0 or none means the rule.
    const bool said = transformers || (reader.has("num_heads") && reader.count("num_heads", 0) > 0);
    if (said && reader.size("num_heads", 128) != heads)
        reader.refuse("num_heads", "hidden_size * expand / head_dim, " + std::to_string(heads));
    return heads;
}

ModelConfig read(const ConfigReader& reader) {
    refuse_layer_configs(reader);
    const bool transformers = reader.has("layer_norm_epsilon") || reader.has("time_step_limit");
    const SizeKeys keys;
    ModelConfig config;
    config.vocabulary = reader.size(keys.vocabulary, transformers ? 32'768 : 32'000);
    config.hidden = reader.size(keys.hidden, transformers ? 4096 : 2048);
    config.layers = reader.size(keys.layers, transformers ? 64 : 48);
    if (config.layers > kMostLayers) reader.refuse(keys.layers, "at most " + std::to_string(kMostLayers));
    config.head_size = reader.size("head_dim", 64);
    config.heads = config.key_value_heads = read_heads(reader, config, transformers);
    set_mamba2_heads(config, reader,
                     {config.heads, config.head_size, reader.size("state_size", 128),
                      reader.size("n_groups", transformers ? 8 : 1), reader.size("conv_kernel", 4)},
                     "n_groups");
    config.mixers.assign(static_cast<std::size_t>(config.layers), mixers::kMamba2.name);
    if (read_activation(reader, "hidden_act", "silu") != Activation::silu) reader.unsupported("hidden_act", "silu");
    config.activation = Activation::silu;
    config.gated_feed_forward = true;  // of which there is none
    config.norm = NormKind::rms;
    config.norm_epsilon = reader.positive(transformers ? "layer_norm_epsilon" : "norm_eps", 1e-5);
    config.positions = PositionKind::none;
    config.tied_head = reader.boolean("tie_word_embeddings", false);
    const double deviation = reader.number("initializer_range", config.initializer_range);
    if (deviation > 0) config.initializer_range = deviation;
    StateSpaceConfig& choices = config.state_space;
    choices.projection_bias = config.output_bias = reader.boolean("use_bias", false);
    choices.taps_bias = reader.boolean("use_conv_bias", true);
    read_step_limit(config, reader, transformers ? "time_step_limit" : "dt_limit");
    if (transformers) return config;
    choices.normed = reader.boolean("rmsnorm", true);
    choices.norm_first = reader.boolean("norm_before_gate", false);
    choices.direct_by_number = reader.boolean("D_has_hdim", false);
    if (reader.has("attnres_block_size")) reader.unsupported("attnres_block_size", "none: residuals are plain sums");
    return config;
}

TensorNames names(const ModelConfig&) {
    TensorNames names;
    names.keys.heads = "num_heads";
    names.prefixes = {"backbone.", ""};
    names.token_embedding = "embeddings";
    names.layer = "layers.{}.";
    names.in_layer.input_norm = "norm";
    names.in_layer.recurrent.stem = "mixer.";
    names.in_layer.recurrent.keys.groups = "2 * n_groups * state_size";
    names.in_layer.recurrent.keys.taps = "conv_kernel";
    names.in_layer.output = "mixer.out_proj";
    names.final_norm = "norm_f";
    names.head = "lm_head";
    return names;
}

}  // namespace

const Family kMamba2Model{"mamba2",
                          {"mamba2"},
                          "Mamba2, of transformers or flash-linear-attention: a state that decays, no feed-forward",
                          read,
                          names};

}  // namespace headscope::model
