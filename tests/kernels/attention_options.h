// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/attention_case.h"

namespace headscope::kernels::testing {

using AttentionOption = std::pair<std::string, std::function<void(AttentionCase&)>>;

/// Every option of ScoreRule, each in a case or two.
std::vector<AttentionOption> attention_options();

/// A case with statistics per query and, for self-attention, tokens.
AttentionCase make_case(const Shape& shape, const AttentionOption& option, ElementType type = ElementType::float32);

/// The same of two sequences if the option makes them differ, by lengths or visible blocks, else of one.
AttentionCase make_option_case(Shape shape, const AttentionOption& option, ElementType type = ElementType::float32);

/// Cases whose first sequence has no keys, and whose second one has rows that see none: all normalizers that take
/// padding, with and without sink logits.
std::vector<AttentionCase> cases_without_keys(ElementType type = ElementType::float32);

}  // namespace headscope::kernels::testing
