// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/gated_deltanet.h"

namespace headscope::mixers {

/// Tokens whose errors are those of one memory, the one before them.
inline const MixerOption kMiniBatch{"mini_batch_size", std::int64_t{16}, {}, 1, 1024};
/// How far a token's step reaches at most, times the size of a key.
inline const MixerOption kBaseRate{"base_lr", 1.0, {}, 1e-6, 1e6};

/// TTT-Linear (Sun et al., arXiv 2407.04620), in the conventions of flash-linear-attention's plain operator. What it
/// costs depends on the mini-batch: no row of the papers' letters.
inline const MixerType kTttLinear{
    .name = "ttt_linear",
    .summary = "a linear map that learns from each mini-batch of tokens, by gradients, to make values of keys",
    .has_matrix = false,
    .options = {kOwnHeads, kOwnKeySize, kTaps, {"use_gate", true}, kMiniBatch, kBaseRate}};

/// Titans' memory (Behrouz et al., arXiv 2501.00663), likewise, of one linear map.
inline const MixerType kTitans{
    .name = "titans",
    .summary = "a linear map that learns from each token, by gradients with momentum, and forgets as the token says",
    .has_matrix = false,
    .options = {kOwnHeads, kOwnKeySize, kTaps, {"use_gate", true}, kMiniBatch, kBaseRate}};

}  // namespace headscope::mixers
