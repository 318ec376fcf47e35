// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Input of a model with a hash embedding instead of rows of a vocabulary's table (core/tokenizer/hashed/settings.h has
// the kinds and their sources). `emb` is a table, in Embedding; the others are here. Autograd records all of it.
// Threads: the compute thread.

#include <ATen/core/Tensor.h>

#include "core/model/batch.h"
#include "core/model/load/tensor_plan.h"
#include "core/model/training_forward.h"
#include "core/tokenizer/hashed/settings.h"

namespace headscope::model {

struct HashEmbedding {
    tokenizer::HashSettings settings;  ///< of a table or emb: not there
    at::Tensor special;  ///< [6, d]: special tokens, and what every word has; [5, d] of linear and characters
    at::Tensor codes;    ///< pool: [2^group_bits, d]
    at::Tensor parts;    ///< pool: [groups, d], whose softmax over the groups are their weights, of each dimension
    at::Tensor bits;     ///< add: [T, 2, d]
    at::Tensor axes;     ///< proj, linear: [d, T]
    at::Tensor buckets;  ///< characters: [functions, buckets, d / functions]
    at::Tensor normal;   ///< [n-grams] lsh, for hashing; a model reads bits. emb has it too

    bool there() const { return special.defined(); }
    /// Vectors [B, L, d] of a batch that check_batch has passed. In training a share of the numbers of code words
    /// (pool) and of bits' vectors (add) is dropped.
    at::Tensor operator()(const Batch& batch, const TrainingForward* training) const;
    /// Tensors are `prefix` + embed_special and so on; `hidden` is d.
    void declare(TensorPlan& plan, const std::string& prefix, const Dimension& hidden);

private:
    // `words`: bits [B, L, T] in the weights' type.
    at::Tensor pooled(const at::Tensor& words, const TrainingForward* training) const;
    at::Tensor added(const at::Tensor& words, const TrainingForward* training) const;
    at::Tensor correlated(const at::Tensor& words) const;
    at::Tensor bucket_rows(const at::Tensor& points) const;
};

}  // namespace headscope::model
