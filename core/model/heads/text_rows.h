// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Input and output of a head for classes of texts (HeadKind::sequence_classes). Threads: the compute thread.

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/model/batch.h"
#include "core/model/config.h"
#include "core/model/model.h"

namespace headscope::model {

/// Mean of x [B, L, ..] over the first lengths[b] of L; `lengths` empty: over all.
at::Tensor mean_over(const at::Tensor& x, const std::vector<std::int64_t>& lengths);

/// One row for each text, [B, d], of its hidden states [B, L, d]: the first, the mean or the last that is no padding
/// (ModelConfig::text_pooling).
/// Error(unsupported) for a head whose logits are averaged instead.
at::Tensor text_rows(const ModelConfig& config, const at::Tensor& hidden, const std::vector<std::int64_t>& lengths);

/// Logits of the texts of `batch`, [B, classes] float32, from what forward() made of it.
at::Tensor text_logits(Model& model, const at::Tensor& hidden, const Batch& batch);

}  // namespace headscope::model
