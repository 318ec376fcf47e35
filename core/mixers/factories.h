// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Factories of the mixers whose classes only their own files see. registry.cpp names the type of each.

#include "core/mixers/mixer.h"

namespace headscope::mixers {

using Factory = std::unique_ptr<Mixer>(const MixerType& type, const model::ModelConfig& config, std::int64_t layer);

Factory make_approximate, make_differential, make_fourier, make_gated_delta, make_guided, make_kimi_delta, make_latent,
    make_lazy, make_lightning, make_linear_attention, make_mlp, make_natsl, make_non_approximate, make_relative,
    make_selective_scan, make_short_convolution, make_side_by_side, make_static_embedding, make_streaming,
    make_test_time, make_token_map;

}  // namespace headscope::mixers
