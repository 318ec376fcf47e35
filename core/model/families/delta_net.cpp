// SPDX-License-Identifier: GPL-3.0-or-later
// DeltaNet (Yang et al., arXiv 2406.06484) as flash-linear-attention saves it, with softmax attention in the layers
// that `attn` names.
#include <nlohmann/json.hpp>

#include "core/mixers/types/gated_deltanet.h"
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

using mixers::kDeltaNet;

void read_choice(ModelConfig& config, const ConfigReader& reader, const std::string& key) {
    const auto given = reader.view(key);
    if (!given) return;
    for (const Option& option : kDeltaNet.options) {
        if (key != option.name) continue;
        const auto value = checked_value(option, given->value(), reader.where(key), {.kind = ErrorCode::unsupported});
        config.mixer_options.set(kDeltaNet, key, value.get<std::string>());
    }
}

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_fla(reader, {.layers = 24, .heads = 16});
    set_fla_heads(config, kDeltaNet, read_fla_head(reader, config, "expand_k", 1.0),
                  read_fla_head(reader, config, "expand_v", 1.0));
    config.mixer_options.set(kDeltaNet, "use_gate", read_fla_flag(reader, "use_gate", false));
    config.mixer_options.set(kDeltaNet, "use_beta", read_fla_flag(reader, "use_beta", true));
    config.mixer_options.set(kDeltaNet, "allow_neg_eigval", read_fla_flag(reader, "allow_neg_eigval", false));
    read_choice(config, reader, "qk_activation");
    read_choice(config, reader, "qk_norm");
    const bool convolves = read_fla_flag(reader, "use_short_conv", true);
    config.mixer_options.set(kDeltaNet, "conv_size", convolves ? reader.size("conv_size", 4) : 0);
    read_fla_layers(config, reader, kDeltaNet);
    return config;
}

}  // namespace

const Family kFlaDeltaNet{"delta_net",
                          {"delta_net"},
                          "DeltaNet of flash-linear-attention, with softmax attention in some layers or none",
                          read,
                          fla_names};

}  // namespace headscope::model
