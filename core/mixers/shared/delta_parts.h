// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Parts of a layer's input for Gated DeltaNet and related mixers: query, key and value through a short convolution and
// SiLU, write strength, decay, and the output's gate.

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "core/mixers/mixer.h"
#include "core/mixers/shared/recurrence.h"
#include "core/model/blocks.h"
#include "core/model/config.h"
#include "core/model/load/recipe.h"
#include "core/model/load/tensor_plan.h"

namespace headscope::mixers {

/// Sizes of a recurrent mixer's heads.
struct DeltaSizes {
    std::int64_t key_heads = 0, heads = 0;  ///< heads: of values, a multiple
    std::int64_t sharing = 1;  ///< queries that share a key and a value, which the file has once (RetNet, GLA)
    std::int64_t key_size = 0, value_size = 0;
    std::int64_t taps = 0;  ///< 0: no convolution

    /// By those options of gated_deltanet.h and linear_attention.h that the type has; throws Error(mismatch) where
    /// heads do not divide or a value would have no size.
    DeltaSizes(const MixerType& type, const model::ModelConfig& config);
    std::int64_t key_rows() const { return key_heads * key_size; }
    std::int64_t value_rows() const { return heads * value_size; }
    /// Rows of the maps to all three, as a file has them.
    std::int64_t query_key_value_rows() const { return key_rows() + (key_rows() + value_rows()) / sharing; }
};

/// Which of query, key and value go through SiLU, after the convolution where there is one.
enum class DeltaActivation : std::uint8_t { all, value, none };

class DeltaParts {
public:
    /// `writes` false: every token writes alike, and there is no such map.
    /// `sigmoid`: the gate is one, not SiLU.
    DeltaParts(const DeltaSizes& sizes, bool decays, bool gated, bool negative,
               DeltaActivation activation = DeltaActivation::all, bool writes = true, bool sigmoid = false)
        : sizes_(sizes),
          decays_(decays),
          gated_(gated),
          negative_(negative),
          writes_(writes),
          sigmoid_(sigmoid),
          activation_(activation) {}
    void declare(model::TensorPlan& plan, const model::TensorNames& names);

    struct Heads {
        at::Tensor query, key;  ///< [B, Hk, L, dk] after convolution and activation
        at::Tensor value;       ///< [B, H, L, dv]
        at::Tensor gate;        ///< [B, L, H * dv] before its SiLU, where the file has one map of all; else undefined
    };
    /// `before`: the convolution's earlier inputs (short_convolution); null: a text of its own.
    Heads heads(const at::Tensor& normed, at::Tensor* before, const Cancellation* cancellation) const;
    // The same in steps: the rows of query, key and value side by side, [B, L, rows], then convolution and activation;
    // or no more than their heads.
    at::Tensor projected(const at::Tensor& normed, const Cancellation* cancellation) const {
        return query_key_value_(normed, cancellation);
    }
    Heads convolved(const at::Tensor& projected, at::Tensor* before) const;
    Heads split(const at::Tensor& projected) const;
    struct Rates {
        at::Tensor write;      ///< beta [B, H, L], float32 at least; undefined where it is 1
        at::Tensor log_decay;  ///< g [B, H, L], float32 at least; undefined where nothing decays
    };
    Rates rates(const at::Tensor& normed) const;
    /// The gate [B, L, H * dv] as its map gives it.
    at::Tensor gate_logits(const at::Tensor& normed, const Cancellation* cancellation) const {
        return gate_(normed, cancellation);
    }
    /// SiLU (or the sigmoid) of the gate [B, L, H * dv]; undefined without one. `made`: what heads() returned of it.
    at::Tensor gate(const at::Tensor& normed, const Cancellation* cancellation, const at::Tensor& made = {}) const;

    const DeltaSizes& sizes() const { return sizes_; }
    Site site() const;

private:
    void declare_maps(model::TensorPlan& plan, const model::TensorNames& names);
    void declare_taps(model::TensorPlan& plan, const model::TensorNames& names);
    struct Piece {
        std::string map, taps;  ///< their names
        std::int64_t first;     ///< row of the one matrix
        model::Dimension rows;
    };
    /// Query, key and value of a file that has them apart.
    std::array<Piece, 3> pieces(const model::RecurrentNames& own) const;
    /// `both`: what write_decay_ makes of the input, where the file has one map of both.
    at::Tensor write(const at::Tensor& normed, const at::Tensor& both) const;
    at::Tensor log_decay(const at::Tensor& normed, const at::Tensor& both) const;
    /// `logits` of each value head out of those that come key head by key head: of writing (0) or decay (1).
    at::Tensor of_values(const at::Tensor& logits, std::int64_t which) const;

    DeltaSizes sizes_;
    bool decays_, gated_, negative_, writes_, sigmoid_;
    DeltaActivation activation_;
    bool by_key_head_ = false;  ///< RecurrentNames::query_key_value_gate
    model::Linear query_key_value_, write_, decay_, gate_;
    model::Linear write_decay_;        ///< RecurrentNames::write_decay
    at::Tensor taps_;                  ///< [channels, 1, taps]
    at::Tensor rate_log_, step_bias_;  ///< [H]
};

/// Memory of a mixer made of these parts.
class DeltaCache final : public MixerCache {
public:
    std::int64_t bytes() const override;
    std::unique_ptr<MixerCache> clone() const override;
    std::unique_ptr<MixerCache> chosen(const at::Tensor& sequences) const override;

    RecurrentCache state;
    at::Tensor before;  ///< the convolution's last inputs
};

/// The type of gates and decays: float32 at least.
at::Tensor at_least_float(const at::Tensor& x);
/// x / sqrt(sum x^2 + 1e-6) over the last dimension.
at::Tensor unit_length(const at::Tensor& x);

}  // namespace headscope::mixers
