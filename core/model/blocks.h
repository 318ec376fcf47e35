// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The vocabulary of blocks: plain weights and functions of at:: that work on them, the same for every family. Shapes:
// x is [.., d]; the last dimension is what a block works on. Inputs are never written to, and what autograd records is
// not done in place. Long inputs are worked off in chunks of rows: that bounds the memory for what lies between two
// products, and lets a large model heed a cancellation within a fraction of a second.

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

#include "core/model/config.h"
#include "core/model/embedding/hash_embedding.h"
#include "core/model/experts.h"
#include "core/model/heads/adaptive.h"
#include "core/model/heads/head_loss.h"
#include "core/model/load/packed_matrix.h"
#include "core/model/load/recipe.h"
#include "core/model/load/row_table.h"
#include "core/model/load/tensor_plan.h"

namespace headscope::model {

struct Linear {
    at::Tensor weight;  ///< [out, in], perhaps a transposed view
    at::Tensor bias;    ///< [out] or undefined
    /// In place of `weight`, which is undefined then: in passes of few tokens.
    std::shared_ptr<const PackedMatrix> packed{};
    bool there() const { return weight.defined() || packed; }
    std::int64_t outputs() const;
    std::int64_t elements() const;  ///< of the matrix
    at::Tensor operator()(const at::Tensor& x, const Cancellation* cancellation = nullptr) const;
    void declare(TensorPlan& plan, const std::string& stem, const Dimension& out, const Dimension& in, bool with_bias);
    /// The same for a map that is only applied: its weight may be `packed`.
    void declare_for_products(TensorPlan& plan, const std::string& stem, const Dimension& out, const Dimension& in,
                              bool with_bias);
};

struct Norm {
    NormKind kind = NormKind::layer;
    double epsilon = 1e-5;
    double gain_offset = 0;
    at::Tensor weight;   ///< [d]; undefined: no norm, x is returned as it is
    at::Tensor bias;     ///< [d] or undefined
    bool affine = true;  ///< false: a norm that has neither
    at::Tensor operator()(const at::Tensor& x) const;
    at::Tensor gain() const;  ///< the factor of each channel; undefined: none
    void declare(TensorPlan& plan, const std::string& stem, const Dimension& size, bool old_names);
    /// An RMS norm of a recurrent mixer's own, whose gain is w (ModelConfig::norm_gain_offset, recurrent_norm_epsilon).
    void declare_recurrent(TensorPlan& plan, const std::string& stem, const Dimension& size);
};

/// Takes over `x`: the result may be in its storage.
at::Tensor activate(Activation activation, at::Tensor x);

/// xIELU (Huang and Schlag, arXiv 2411.13010): a x^2 + b x above 0, else (exp(min(x, e)) - 1 - x) c + b x, with a =
/// softplus(alpha_positive), b = beta, c = b + softplus(alpha_negative) and e = epsilon.
struct Xielu {
    at::Tensor alpha_positive, alpha_negative;  ///< [1]
    at::Tensor beta, epsilon;                   ///< [], perhaps undefined: 0.5 and -1e-6
    at::Tensor operator()(const at::Tensor& x) const;
    void declare(TensorPlan& plan, const std::string& stem);
};

/// down(act(up x)), or down(act(gate x) * up x) with gate and up in one matrix.
struct FeedForward {
    Activation activation = Activation::gelu;
    bool gated = false;
    double gate_scale = 1;
    Linear up;  ///< gated: rows of gate, then rows of up
    Linear down;
    Xielu xielu;      ///< of Activation::xielu
    Experts experts;  ///< where there are any, in place of up and down, which are of the expert that all tokens have
    Linear shared_share;  ///< [1, d]: what that one's output is multiplied by the sigmoid of; weight undefined: nothing
    /// `taken`: as of Experts, where there are any.
    at::Tensor operator()(const at::Tensor& x, const Cancellation* cancellation = nullptr,
                          Routing* taken = nullptr) const;
    void declare(TensorPlan& plan, const TensorNames& names, std::int64_t layer);

private:
    at::Tensor plain(const at::Tensor& x, const Cancellation* cancellation) const;
    void declare_plain(TensorPlan& plan, const TensorNames& names, const LayerNames& parts, const Dimension& inner);
};

/// Input of the first layer, from a Batch.
struct Embedding {
    at::Tensor tokens;  ///< [vocabulary, e], or of hashed words; undefined: in clusters, `hashed`, or `stored`
    std::shared_ptr<RowTable> stored;
    AdaptiveTables clusters;
    HashEmbedding hashed;
    at::Tensor positions;    ///< [offset + max positions, d], or e (ALBERT), or undefined: none, or made
    at::Tensor token_types;  ///< [types, d], or e, or undefined
    Norm norm;
    Linear projection;  ///< [d, e]; weight undefined: e = d
    at::Tensor operator()(const Batch& batch, std::int64_t first_position,
                          const TrainingForward* training = nullptr) const;
    void declare(TensorPlan& plan, const TensorNames& names);
    /// The type that the model computes in.
    at::ScalarType type() const;
    /// Rows of the table of tokens.
    std::int64_t rows() const;
    std::int64_t columns() const;  ///< of any table

private:
    /// Rows of the table, read or made: [L, d], or [B, L, d] where they depend on the tokens.
    at::Tensor position_rows(const at::Tensor& ids, std::int64_t first_position) const;
    at::Tensor without_dropped(const at::Tensor& x, const Batch& batch) const;
    /// Those of PositionKind::sinusoidal, for tokens at these numbers.
    at::Tensor made_rows(const at::Tensor& numbers, std::int64_t size) const;

    std::int64_t dropped_token_ = -1;
    bool sum_projected_ = false, norm_first_ = false;
    bool made_ = false, fairseq_ = false, interleaved_ = false;  ///< positions are computed; as fairseq does; Vaswani
    double scale_ = 1.0;
    std::int64_t position_offset_ = 0, position_padding_ = -1;
};

/// From hidden rows to the vocabulary, or to classes: `vocabulary` is then the map to these.
struct Head {
    bool there = false;
    Linear projection;  ///< [e, d] of OPT's small embeddings; weight undefined: none
    Activation activation = Activation::gelu;
    Linear transform;                  ///< BERT's dense layer before the vocabulary; weight undefined: none
    Norm transform_norm;               ///< weight undefined: none
    AdaptiveHead clusters;             ///< in place of all others
    Linear vocabulary;                 ///< a tied one shares Embedding::tokens
    std::shared_ptr<RowTable> stored;  ///< in place of its weight
    at::Tensor logits_bias;            ///< [1, vocabulary] or undefined
    double scale = 1;                  ///< of the rows
    double soft_cap = 0;
    /// [N, d] -> [N, V] float32; log-probabilities where the vocabulary lies in clusters.
    at::Tensor operator()(const at::Tensor& rows) const;
    /// The loss of the same logits, without all of them in memory (head_loss.h).
    LossSum loss(const at::Tensor& rows, const at::Tensor& targets, const HeadLossOptions& options) const;
    /// [N, d] -> [N, classes] in the rows' type; recorded by autograd.
    at::Tensor class_logits(const at::Tensor& rows) const;
    /// Declares what the file has; a head that is absent is reported as missing and leaves `there` false.
    void declare(TensorPlan& plan, const TensorNames& names);

private:
    at::Tensor before_vocabulary(const at::Tensor& rows) const;
    at::Tensor entries(const at::Tensor& rows) const;
};

}  // namespace headscope::model
