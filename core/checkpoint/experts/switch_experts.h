// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>

#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// Names each expert of MLX's stacks (switch_mlp.gate_proj.weight, [experts, out, in]) as transformers does:
/// experts.N.gate_proj.weight, [out, in]. Nothing is read. Throws Error(mismatch) where the files have both.
void split_switch_experts(std::map<std::string, TensorInfo>& tensors);

/// Gives MLX's stacks of gpt-oss's and Llama 4's experts (experts.gate_proj.weight, up_proj and down_proj, [experts,
/// out, in]) the names and shapes that transformers has: experts.gate_up_proj and down_proj, [experts, in, out].
/// gpt-oss alternates columns of gate and up. Nothing is read. Throws Error(mismatch) where a stack is missing or has
/// another shape, or the files have both names.
void join_expert_stacks(std::map<std::string, TensorInfo>& tensors);

}  // namespace headscope::checkpoint
