// SPDX-License-Identifier: GPL-3.0-or-later
// Gated DeltaNet (Yang et al., arXiv 2412.06464) as flash-linear-attention saves it, with softmax attention in the
// layers that `attn` names.
#include <cmath>

#include "core/mixers/types/gated_deltanet.h"
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

using mixers::kGatedDeltaNet;

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_fla(reader, {.layers = 21, .heads = 6});
    const std::int64_t size = reader.size("head_dim", 256);
    const double expanded = static_cast<double>(size) * reader.positive("expand_v", 2.0);
    if (expanded > 1e9 || std::floor(expanded) < 1 || expanded - std::floor(expanded) > 1e-5 * expanded)
        reader.refuse("expand_v", "head_dim (" + std::to_string(size) + ") times that to be a whole number");
    set_fla_heads(config, kGatedDeltaNet, size, static_cast<std::int64_t>(expanded));
    const std::int64_t heads = reader.size("num_v_heads", config.heads);
    if (heads % config.heads != 0 || heads > kMostHeads)
        reader.refuse("num_v_heads", "a multiple of num_heads (" + std::to_string(config.heads) + ")");
    config.mixer_options.set(kGatedDeltaNet, "num_value_heads", heads);
    config.mixer_options.set(kGatedDeltaNet, "use_gate", read_fla_flag(reader, "use_gate", true));
    const std::string gate = reader.text("output_gate_activation", "swish");
    if (gate != "swish" && gate != "silu" && gate != "sigmoid")
        reader.unsupported("output_gate_activation", "swish, silu or sigmoid");
    config.sigmoid_gate = gate == "sigmoid";
    config.mixer_options.set(kGatedDeltaNet, "allow_neg_eigval", read_fla_flag(reader, "allow_neg_eigval", false));
    const bool convolves = read_fla_flag(reader, "use_short_conv", true);
    config.mixer_options.set(kGatedDeltaNet, "conv_size", convolves ? reader.size("conv_size", 4) : 0);
    read_fla_layers(config, reader, kGatedDeltaNet);
    return config;
}

}  // namespace

const Family kFlaGatedDeltaNet{
    "gated_deltanet",
    {"gated_deltanet"},
    "Gated DeltaNet of flash-linear-attention, with softmax attention in some layers or none",
    read,
    fla_names};

}  // namespace headscope::model
