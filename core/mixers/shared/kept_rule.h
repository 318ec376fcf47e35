// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <utility>

#include <ATen/core/ivalue.h>

#include "kernels/score_rule.h"

namespace headscope::mixers {

/// The rule of a call, kept in an autograd context for its backward pass.
template <class Rule>
struct Kept : torch::CustomClassHolder {
    explicit Kept(Rule rule) : value(std::move(rule)) {}
    Rule value;
};
using KeptRule = Kept<kernels::ScoreRule>;

}  // namespace headscope::mixers
