// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <utility>

#include <ATen/core/ivalue.h>

#include "kernels/attention.h"

namespace headscope::mixers {

/// The rule of a call, kept in an autograd context for its backward pass.
struct KeptRule : torch::CustomClassHolder {
    explicit KeptRule(kernels::ScoreRule rule) : value(std::move(rule)) {}
    kernels::ScoreRule value;
};

}  // namespace headscope::mixers
