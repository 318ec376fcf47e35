// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// Weights that are no plain model's: place, expectation, finding.
struct SpecialWeights {
    std::string where, expected, found;
    ErrorCode code = ErrorCode::unsupported;
};

/// Quantized weights that are not read (Checkpoint::quantization_fault), adapters and models with adapters in them
/// (PEFT), nanoGPT's own names: found by names and shapes of tensors. Empty for all others.
std::optional<SpecialWeights> special_weights(const Checkpoint& checkpoint);

}  // namespace headscope::checkpoint
