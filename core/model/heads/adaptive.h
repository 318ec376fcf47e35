// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A vocabulary in clusters (ModelConfig::adaptive): embedding and head of Transformer-XL, as its PyTorch files have
// them. Not recorded by autograd.

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/model/config.h"

namespace headscope::model {

class TensorPlan;
struct TensorNames;

/// Vectors of all entries.
struct AdaptiveTables {
    std::vector<at::Tensor> vectors;  ///< per cluster [entries, its size]; of divisor 1 one of all entries
    std::vector<at::Tensor> maps;     ///< per table [hidden, its size]; undefined: hidden is that size
    bool there() const { return !vectors.empty(); }
    /// ids [B, L] -> [B, L, hidden].
    at::Tensor rows_of(const at::Tensor& ids) const;
    /// `stem`.emb_layers.N.weight, `stem`.emb_projs.N
    void declare(TensorPlan& plan, const std::string& stem);

private:
    AdaptiveConfig config_;
};

class AdaptiveHead {
public:
    bool there() const { return !biases_.empty(); }
    /// [N, hidden] -> log-probabilities [N, vocabulary] float32: of an entry of the first cluster its share there, of
    /// others that of their cluster, beside the first one's entries, times their share in it.
    at::Tensor operator()(const at::Tensor& rows) const;
    /// `names.head`.out_layers.N, .out_projs.N, .cluster_weight and .cluster_bias; or the embedding's where these are
    /// tied. A head that is absent is reported as missing.
    void declare(TensorPlan& plan, const TensorNames& names);

private:
    /// Logits of a cluster's entries; after the first cluster's, those of the other clusters.
    at::Tensor logits(std::int64_t cluster, const at::Tensor& rows) const;

    AdaptiveConfig config_;
    std::vector<at::Tensor> vectors_, biases_;     ///< per table
    std::vector<at::Tensor> maps_;                 ///< per cluster, or undefined
    at::Tensor cluster_vectors_, cluster_biases_;  ///< [clusters - 1, size], [clusters - 1]; undefined: there is one
};

}  // namespace headscope::model
