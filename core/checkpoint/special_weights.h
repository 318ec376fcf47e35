// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>

#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// Weights that are no plain model's: place, expectation, finding.
struct SpecialWeights {
    std::string where, expected, found;
};

/// Quantized weights (bitsandbytes, AWQ, GPTQ, compressed-tensors, MLX, fp8 and other methods of config.json), adapters
/// and models with adapters in them (PEFT), nanoGPT's own names: found by config.json, then by names and types of
/// tensors. Empty for all others, and for experts in MXFP4, which are read.
std::optional<SpecialWeights> special_weights(const Checkpoint& checkpoint);

}  // namespace headscope::checkpoint
