// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>

#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// Names each expert of MLX's stacks (switch_mlp.gate_proj.weight, [experts, out, in]) as transformers does:
/// experts.N.gate_proj.weight, [out, in]. Nothing is read. Throws Error(mismatch) where the files have both.
void split_switch_experts(std::map<std::string, TensorInfo>& tensors);

}  // namespace headscope::checkpoint
