// SPDX-License-Identifier: GPL-3.0-or-later
// Gated linear attention (Yang et al., arXiv 2312.06635) as flash-linear-attention saves it, with softmax attention in
// the layers that `attn` names.
#include "core/mixers/types/linear_attention.h"
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

using mixers::kGla;

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_fla(reader, {.layers = 24, .heads = 4});
    read_fla_linear(config, reader, kGla, 0.5, 1.0);
    const bool convolves = read_fla_flag(reader, "use_short_conv", false);
    config.mixer_options.set(kGla, "conv_size", convolves ? reader.size("conv_size", 4) : 0);
    if (reader.has("clamp_min")) {
        const double least = reader.number("clamp_min", 0);
        if (least >= 0) reader.unsupported("clamp_min", "a number below 0, or none");
        config.mixer_options.set(kGla, "clamp_min", least);
    }
    read_fla_layers(config, reader, kGla);
    return config;
}

}  // namespace

const Family kFlaGla{"gla",
                     {"gla"},
                     "Gated linear attention of flash-linear-attention, with softmax attention in some layers or none",
                     read,
                     fla_linear_names};

}  // namespace headscope::model
