// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A Recurrence as kernels/recurrent.h reads it.

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/mixers/shared/recurrence.h"
#include "kernels/recurrent.h"

namespace headscope::mixers {

/// `what.rule` with what the tensors say: decay, chunks, and `open` tokens of the first chunk that came earlier.
kernels::RecurrentRule rule_of(const Recurrence& what, std::int64_t open);

/// Input of the kernels, and the tensors that it points into: float64 becomes float32.
struct KernelInput {
    at::Tensor query, key, value, write, log_decay, direct;
    kernels::RecurrentRule rule;
    kernels::RecurrentInput input;

    /// `rule` is rule_of()'s; its factors are what.kept.
    KernelInput(const Recurrence& what, kernels::RecurrentRule rule_of_call, const Cancellation* cancellation);
    KernelInput(const KernelInput&) = delete;
    KernelInput& operator=(const KernelInput&) = delete;
};

}  // namespace headscope::mixers
