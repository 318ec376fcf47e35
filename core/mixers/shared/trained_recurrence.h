// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// kernels/recurrent.h as a function that autograd records: the forward pass leaves a state a piece of 64 tokens, and
// the backward pass walks back over the pieces.

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/mixers/shared/recurrence.h"

namespace headscope::mixers {

/// True if autograd records any of its tensors.
bool recurrence_recorded(const Recurrence& what);

/// True if it does and trained_recurrence() supports the types of queries, keys and values (float32 or bfloat16) and
/// the decay (one a token and head, or none).
bool recurrence_trains_fused(const Recurrence& what);

/// -> [B, L, H * dv] in the type of the value, of a text from its beginning. Gradients reach all of its tensors but
/// `direct`. Of its rule, decay and chunks are filled in. Throws Stopped when cancelled.
at::Tensor trained_recurrence(const Recurrence& what, const Cancellation* cancellation);

}  // namespace headscope::mixers
