// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/gated_deltanet.h"

namespace headscope::mixers {

/// NAtS-L (Deng et al., "Neural Attention Search Linear"). `num_softmax_heads` 0: as many as linear ones.
/// `inside_chunk`: which branch sees a query's own chunk; `rope_theta` is its own, whatever the model's. Of Table 4:
/// `inside_chunk` softmax and linear, `decay_in_softmax_chunks` false, `norm` sum, `weights` none and input.
inline const MixerType kNatsl{.name = "natsl",
                              .title = "NAtS-L",
                              .color = 3,
                              .summary = "softmax attention and Gated DeltaNet, chosen by each head chunk by chunk",
                              .options = {kOwnHeads,
                                          kOwnKeySize,
                                          kExpandValue,
                                          {"num_softmax_heads", std::int64_t{0}, {}, 0, 65536},
                                          {"chunk_size", std::int64_t{64}, {}, 1, 65536},
                                          kTaps,
                                          {"softmax_reads_conv", true},
                                          {"rotary", true},
                                          {"rope_theta", 10000.0, {}, 1e-6, 1e12},
                                          {"decay_in_softmax_chunks", true},
                                          {"inside_chunk", "both", {"both", "softmax", "linear"}},
                                          {"norm", "each", {"each", "sum"}},
                                          {"weights", "query", {"query", "input", "none"}},
                                          {"choice", "argmax", {"argmax", "gumbel"}},
                                          kNegativeEigenvalue,
                                          {"score_gradient_all", false}},
                              .cost = {.time = "B L d^2 + B L n k v + s B L^2 n (k + v)",
                                       .prefill = "2 B L d (2 n k + 2 n v + 2 n) + 4 B L m x + 4 B L d n / C + "
                                                  "6 B L n k v + 2 B L n (k + v) (s L + (1 - s) C)",
                                       .decode = "2 B d (2 n k + 2 n v + 4 n) + 4 B m x + 6 B n k v + "
                                                 "2 B n (k + v) (s L + (1 - s) C)",
                                       .cache = "4 B n k v + 2 B n + 2 B p n (2 k + v) + 2 B s L n (k + v)",
                                       .parameters = "d (2 n k + 2 n v + 4 n) + 2 m x + c n (2 k + v) + 2 n + "
                                                     "2 n k / m + y n v / m"}};

}  // namespace headscope::mixers
