// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/types/test_time.h"
#include "core/model/blocks.h"

namespace headscope::mixers {

/// TTT-Linear (kTttLinear) and Titans (kTitans), whose state is a map W of each head that learns while it reads. Linear
/// time, a cache of constant size. The operators are flash-linear-attention 0.6.0's plain ones (fla/ops/ttt/naive.py,
/// fla/ops/titans/naive.py), to the letter:
///
/// A token's error is of the W before its mini-batch: with x = k W, its layer norm n = (x - mean x) / s, s = sqrt(var x
/// + 1e-6), and g = a (a n + c - (v - k)), a and c being the head's gain and bias,
///     TTT-Linear  e = (g - mean g - n mean(g n)) / s         the gradient of |a n + c - (v - k)|^2 / 2 by x
///     Titans      e = D g - (mean g + n mean(g n)) / s       the operator's, which that gradient is not
/// D the size of a head. Then o = y + a layernorm(y) + c, where
///     TTT-Linear  y_t = q~_t (W - eta_t sum of k~_j^T e_j over the mini-batch's j <= t), k~ = (k, 1) and q~ = (q /
///                 sqrt(D), 1): the last row of W is a bias. The mini-batch's last token makes the next W.
///     Titans      S_t = eta_t S_(t-1) - 2 theta_t k_t^T e_t, W_t = (1 - alpha_t) W_(t-1) + S_t, y_t = q_t W_t, S_0 = 0
///
/// The operators leave open what goes in, and flash-linear-attention has no layers of them. Ours is that of its Gated
/// DeltaNet: queries, keys and values through a short convolution and SiLU, unit queries and keys, an RMS norm of each
/// head's output times SiLU of a gate. Rates are r = base_lr sigmoid(w x + b) / D of each token and head: Titans'
/// theta; TTT-Linear's eta_t = r / (place of t in its mini-batch, from 1), as in the authors' code (ttt-lm-pytorch),
/// without its correction learned for each place. Titans' alpha and eta are sigmoids of maps, too, alpha's bias begins
/// at -4. W begins at a learned map, drawn as other weights are; no rotary positions. Sums are in float32 at least.
///
/// Mini-batches are ATen operators that autograd knows; training keeps two states of each beside what its tokens make.
/// The norms make outputs no linear function of values: there is no implicit matrix.
class TestTimeMixer final : public Mixer {
public:
    TestTimeMixer(const MixerType& type, const model::ModelConfig& config);

    const MixerType& type() const override { return *type_; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return parts_.sizes().value_rows(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    /// [B, H, D or D + 1, D] each.
    struct Memory {
        at::Tensor start;       ///< before the open mini-batch; undefined: no token yet
        at::Tensor change;      ///< TTT-Linear: sum of the mini-batch's k~^T e; Titans: S; undefined: 0
        at::Tensor now;         ///< Titans: after the last token
        std::int64_t open = 0;  ///< tokens of the mini-batch so far
    };
    class Cache;
    /// [B, H, L, size], or [B, H, L] of rates and what else a token says.
    struct Tokens {
        at::Tensor query, key;  ///< as the memory reads them
        at::Tensor target;      ///< v - k
        at::Tensor rate;
        at::Tensor log_kept, log_momentum;  ///< Titans: ln (1 - alpha), ln eta
        Tokens part(std::int64_t first, std::int64_t count) const;
    };

    bool is_titans() const { return type_ == &kTitans; }
    Tokens tokens(const DeltaParts::Heads& heads, const at::Tensor& normed) const;
    Memory fresh(std::int64_t batch, at::ScalarType type) const;
    /// e of one mini-batch's tokens.
    at::Tensor error(const Tokens& in, const at::Tensor& start) const;
    // y of tokens of one mini-batch, which the memory takes in.
    at::Tensor learn_ttt(const Tokens& in, Memory& memory) const;
    at::Tensor learn_titans(const Tokens& in, Memory& memory) const;
    /// o of all tokens, [B, H, L, D].
    at::Tensor learn(const Tokens& in, Memory& memory, const Cancellation* cancellation) const;

    const MixerType* type_;
    DeltaParts parts_;
    std::int64_t mini_batch_;
    double base_rate_;
    at::Tensor gain_, offset_;                    ///< [H, D] of the memory's layer norm
    at::Tensor initial_, initial_offset_;         ///< [H, D, D]; TTT-Linear: [H, D]
    model::Linear rate_, forgetting_, momentum_;  ///< the latter two: Titans
    model::Norm norm_;                            ///< of each head's output
};

}  // namespace headscope::mixers
