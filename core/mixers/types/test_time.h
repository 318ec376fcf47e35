// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/gated_deltanet.h"

namespace headscope::mixers {

/// Tokens whose errors are those of one memory, the one before them.
inline const Option kMiniBatch{"mini_batch_size", std::int64_t{16}, {}, 1, 1024};
/// How far a token's step reaches at most, times the size of a key.
inline const Option kBaseRate{"base_lr", 1.0, {}, 1e-6, 1e6};

/// TTT-Linear (Sun et al., arXiv 2407.04620), in the conventions of flash-linear-attention's plain operator.
/// What it costs: whole mini-batches; a token of one that has begun, which is when the cache is largest.
inline const MixerType kTttLinear{
    .name = "ttt_linear",
    .title = "TTT-Linear",
    .color = 6,
    .summary = "a linear map that learns from each mini-batch of tokens, by gradients, to make values of keys",
    .has_matrix = false,
    .options = {kOwnHeads, kOwnKeySize, kTaps, {"use_gate", true}, kMiniBatch, kBaseRate},
    .cost = {.time = kState,
             .prefill = "2 B L d ((3 + u) n k + n) + 6 B L n k (k + 1) + 2 B L C n (2 k + 1)",
             .decode = "2 B d ((3 + u) n k + n) + 8 B n k (k + 1) + 2 B n (2 k + 1)",
             .cache = "4 B n k (k + 1) + 6 B p n k",
             .parameters = "d ((3 + u) n k + n) + 3 c n k + n k^2 + 3 n k + n + k"}};

/// Titans' memory (Behrouz et al., arXiv 2501.00663), likewise, of one linear map. The first mini-batch has no momentum
/// yet to read.
inline const MixerType kTitans{
    .name = "titans",
    .title = "Titans",
    .color = 3,
    .summary = "a linear map that learns from each token, by gradients with momentum, and forgets as the token says",
    .has_matrix = false,
    .options = {kOwnHeads, kOwnKeySize, kTaps, {"use_gate", true}, kMiniBatch, kBaseRate},
    .cost = {.time = kState,
             .prefill = "2 B L d ((3 + u) n k + 3 n) + 10 B L n k^2 + 2 B L C n (2 k + C + 1) - 2 B C n (k^2 + C)",
             .decode = "2 B d ((3 + u) n k + 3 n) + 10 B n k^2 + 4 B n (k + 1)",
             .cache = "6 B n k^2 + 6 B p n k",
             .parameters = "d ((3 + u) n k + 3 n) + 3 c n k + n k^2 + 2 n k + 3 n + k"}};

}  // namespace headscope::mixers
