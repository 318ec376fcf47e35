// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Next-token loss of a batch without the batch's logits: the head's product, the softmax and their gradients are made
// in chunks of rows, and what autograd keeps is the gradient of the hidden states and of the head, not [N, V].

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/precise_sum.h"

namespace headscope::model {

struct HeadLossOptions {
    double z_loss = 0.0;         ///< weight of the squared log normaliser (PaLM, arXiv 2204.02311: 1e-4)
    std::int64_t row_chunk = 0;  ///< rows of logits at a time; 0: about 16 MB of them
};

/// The last map to the vocabulary: logits = cap(x weight^T + bias).
struct VocabularyMap {
    at::Tensor weight{};  ///< [V, d]
    at::Tensor bias{};    ///< [V] or undefined
    double soft_cap = 0;  ///< c: c tanh(x / c) (Gemma 2, arXiv 2408.00118); 0: none
};

struct LossSum {
    at::Tensor sum;  ///< float64 scalar: cross_entropy + z_loss; autograd knows it where inputs are recorded
    PreciseSum cross_entropy{};  ///< over the counted rows, nats; chunks and passes do not round it
    double z_loss = 0.0;         ///< sum of z_loss * log(Z)^2
    std::int64_t rows = 0;       ///< counted: targets that are not -1
    std::int64_t correct = 0;    ///< of these, whose target has the largest logit (the first of equals)
};

/// hidden [N, d], the map's weight and bias of one type (float32, bfloat16, float64), targets [N] int64 in [0, V) or
/// -1: ignored. The loss is summed in float64. When autograd records, gradients are computed in this call; backward
/// through `sum` only scales them (so call it once; a second backward is refused).
///
/// Memory: one chunk of logits and its copy in float32 (two with a soft cap), [N, d] and [V, d]. Same bits for every
/// thread count with float32. Errors: headscope::Error for shapes, types and targets out of range.
LossSum head_loss(const at::Tensor& hidden, const VocabularyMap& map, const at::Tensor& targets,
                  const HeadLossOptions& options = {});

/// Squared error of a head that says one number: said [N, 1] against values [N]. `cross_entropy` is the sum of squares,
/// in float64, `rows` all of N. Recorded by autograd. Errors: usage for other shapes.
LossSum squared_error(const at::Tensor& said, const at::Tensor& values);

/// Loss of a head of spans: logits [B, L, 2] against the first and the last token of an answer, labels [B, 2] int64.
/// The mean of the two cross-entropies over the tokens of each sequence (the first lengths[b] of L; empty: all), and
/// with it the z-loss, summed over the B rows in float64. `correct` counts rows where both are found. Recorded by
/// autograd. Errors: usage for other shapes, limit for labels outside of the sequence.
LossSum span_loss(const at::Tensor& logits, const std::vector<std::int64_t>& lengths, const at::Tensor& labels,
                  const HeadLossOptions& options = {});

}  // namespace headscope::model
