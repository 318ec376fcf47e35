// SPDX-License-Identifier: GPL-3.0-or-later
// Mamba and Mamba2 under the names of transformers.
#include "core/checkpoint/gguf/architectures/architecture.h"
#include "core/checkpoint/gguf/architectures/decoder_parts.h"

namespace headscope::checkpoint::gguf {
namespace {

std::string mamba_stem(std::int64_t layer) {
    return "backbone.layers." + std::to_string(layer) + ".";
}

void read_mamba_sizes(ModelBuilder& build, const char* model_type, const char* class_name) {
    nlohmann::json& config = build.config();
    config["model_type"] = model_type;
    config["architectures"] = {class_name};
    config["hidden_size"] = build.size("embedding_length");
    config["num_hidden_layers"] = build.layers();
    config["state_size"] = build.size("ssm.state_size");
    config["conv_kernel"] = build.size("ssm.conv_kernel");
    config["tie_word_embeddings"] = !build.has_tensor("output.weight");
    config["layer_norm_epsilon"] = build.number("attention.layer_norm_rms_epsilon", 1e-5);
    config["use_conv_bias"] = build.has_in_layers("ssm_conv1d.bias");
    config["use_bias"] = build.has_in_layers("ssm_in.bias");
    read_vocabulary(build);
    for (const char* name : {"feed_forward_length", "attention.head_count"})  // written as 0
        if (build.size(name, 0) != 0) build.unsupported(name, "expected 0");
    build.module("token_embd", "backbone.embeddings");
    build.module("output_norm", "backbone.norm_f");
    build.module("output", "lm_head");
}

/// [channels, taps] as a convolution's [channels, 1, taps].
PackedPointer as_taps(const PackedPointer& packed) {
    return with_shape(packed, {packed->rows(), 1, packed->columns()});
}

void name_mamba_layer(ModelBuilder& build, std::int64_t layer) {
    const std::string from = block(layer), to = mamba_stem(layer);
    build.module(from + "attn_norm", to + "norm");
    build.module(from + "ssm_in", to + "mixer.in_proj");
    build.tensor(from + "ssm_conv1d.weight", to + "mixer.conv1d.weight", as_taps);
    build.tensor(from + "ssm_conv1d.bias", to + "mixer.conv1d.bias");
    build.module(from + "ssm_out", to + "mixer.out_proj");
}

}  // namespace

void build_mamba(ModelBuilder& build) {
    read_mamba_sizes(build, "mamba", "MambaForCausalLM");
    build.config()["intermediate_size"] = build.size("ssm.inner_size");
    build.config()["time_step_rank"] = build.size("ssm.time_step_rank");
    if (build.flag("ssm.dt_b_c_rms", false)) build.unsupported("ssm.dt_b_c_rms", "expected false");
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        const std::string from = block(layer), to = mamba_stem(layer) + "mixer.";
        name_mamba_layer(build, layer);
        build.module(from + "ssm_x", to + "x_proj");
        build.module(from + "ssm_dt", to + "dt_proj");
        build.tensor(from + "ssm_a", to + "A_log", log_of_minus);
        build.tensor(from + "ssm_d", to + "D");
    }
}

void build_mamba2(ModelBuilder& build) {
    read_mamba_sizes(build, "mamba2", "Mamba2ForCausalLM");
    const std::int64_t heads = build.size("ssm.time_step_rank");
    const std::int64_t inner = build.size("ssm.inner_size");
    const std::int64_t hidden = build.config()["hidden_size"];
    if (inner % heads != 0)
        build.mismatch("ssm.inner_size", "expected a multiple of " + std::to_string(heads) + " heads");
    build.config()["num_heads"] = heads;
    build.config()["head_dim"] = inner / heads;
    if (inner % hidden == 0)
        build.config()["expand"] = inner / hidden;  // transformers takes no other number
    else
        build.config()["expand"] = static_cast<double>(inner) / static_cast<double>(hidden);
    build.config()["n_groups"] = build.size("ssm.group_count", 1);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        const std::string from = block(layer), to = mamba_stem(layer) + "mixer.";
        name_mamba_layer(build, layer);
        build.tensor(from + "ssm_dt.bias", to + "dt_bias");
        build.tensor(from + "ssm_a", to + "A_log",
                     [heads](const PackedPointer& packed) { return with_shape(log_of_minus(packed), {heads}); });
        build.tensor(from + "ssm_d", to + "D", to_shape({heads}));
        build.tensor(from + "ssm_norm.weight", to + "norm.weight", to_shape({inner}));
    }
}

}  // namespace headscope::checkpoint::gguf
