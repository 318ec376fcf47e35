// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

namespace headscope::kernels::reference {

/// Parts of a ScoreRule that gradients may reach, as tensors. Undefined: the rule's own numbers are constants.
struct RuleTensors {
    at::Tensor sink_logits{};    ///< [H], source of rule.sink_logits
    at::Tensor distance_bias{};  ///< [H, bias_length], source of rule.distance_bias
    /// [B, H, blocks], source of rule.blocks.visible: 1 or 0, a factor of e^s for a block's keys and queries of other
    /// blocks, with the gradient of AttentionGradients::blocks.
    at::Tensor blocks{};
    bool hidden_blocks = false;  ///< gradients reach hidden blocks too
    at::Tensor offsets{};        ///< [H], source of rule.offsets
};

}  // namespace headscope::kernels::reference
