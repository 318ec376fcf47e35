// SPDX-License-Identifier: GPL-3.0-or-later
// RetNet (Sun et al., arXiv 2307.08621) as flash-linear-attention saves it, with softmax attention in the layers that
// `attn` names. That library hands use_short_conv on to no layer, and knows one base of its rotary positions.
#include "core/mixers/types/linear_attention.h"
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

using mixers::kRetNet;

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_fla(reader, {.layers = 24, .heads = 8, .feed_forward_ratio = 2});
    read_fla_linear(config, reader, kRetNet, 1.0, 2.0);
    if (config.head_size % 2 != 0) reader.refuse("expand_k", "heads of even size, for rotary positions");
    config.mixer_options.set(kRetNet, "rope_theta", 10000.0);
    read_fla_layers(config, reader, kRetNet);
    return config;
}

}  // namespace

const Family kFlaRetNet{"retnet",
                        {"retnet"},
                        "RetNet of flash-linear-attention, with softmax attention in some layers or none",
                        read,
                        fla_linear_names};

}  // namespace headscope::model
