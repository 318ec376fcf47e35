// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Attention from a state of constant size (kernels/recurrent.h) as a mixer calls it, and the convolution before it.

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/mixers/mixer.h"
#include "kernels/recurrent.h"

namespace headscope::mixers {

/// One recurrence: what kernels::RecurrentInput says, of any floating type. Under autograd gradients reach all of them.
struct Recurrence {
    at::Tensor query, key;        ///< [B, Hk, L, dk], normed and positioned
    at::Tensor value;             ///< [B, H, L, dv]
    at::Tensor write;             ///< [B, H, L] or undefined: 1
    at::Tensor log_decay;         ///< [B, H, L], [B, H, L, dk], or undefined: none
    at::Tensor kept;              ///< [B, H, chunks], the factor of each NAtS-L chunk; undefined: no chunks
    kernels::RecurrentRule rule;  ///< decay, kept, chunk_begin, chunks and length are filled in by recur()
    bool dropped_too = false;     ///< chunks with factor 0 get a gradient, too (score_gradient_all)
    /// Factor of a token's own value, added to the state's output (Mamba2's D): [H], on the implicit matrix's diagonal;
    /// or [H * dv], which has no such matrix; or undefined.
    at::Tensor direct;
};

/// State of all earlier tokens.
struct RecurrentCache {
    /// [B, H, dk, dv], float32, or float64 of a float64 model; undefined: no token yet.
    at::Tensor now, start;
    at::Tensor decay;       ///< [B, H, 1 or dk] of the open chunk
    std::int64_t open = 0;  ///< tokens of the open chunk

    std::int64_t bytes() const;
    RecurrentCache clone() const;
    RecurrentCache chosen(const at::Tensor& sequences) const;  ///< MixerCache::chosen
};

/// -> [B, L, H * dv], heads side by side, in the type of the value. Kernels for float32 and bfloat16, forward and
/// backward; float64 by the same sums in ATen, piece by piece. Where the probe asks for the site's implicit matrix
/// (Probe::implicit_request) it is measured, and compared with what was returned. Announces "head_output" and
/// edits it. Throws Stopped when cancelled; Error(unsupported) where the probe asks and a cache says
/// that the text began earlier.
at::Tensor recur(const Recurrence& what, RecurrentCache* cache, SiteIndex site, const StackContext& context);

/// The same sums out of ATen operators that autograd knows, in pieces, by a triangular solve; any floating type. ->
/// [B, H, L, dv]. Continues `cache`. What float64 runs, what the fused kernels are timed against. Throws Stopped when
/// cancelled, between pieces.
at::Tensor recur_in_pieces(const Recurrence& what, RecurrentCache* cache, const Cancellation* cancellation = nullptr);

/// Depthwise causal convolution over time. x [B, L, channels]; weight [channels, taps], the last tap meets the current
/// token; bias [channels] or undefined. Then SiLU, unless `plain`. `before`: the last taps - 1 inputs of a cache
/// [B, taps - 1, channels] (undefined: zeros), replaced by the newest; null: not continued. Types and autograd: any.
at::Tensor short_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor* before,
                             bool plain = false);

}  // namespace headscope::mixers
