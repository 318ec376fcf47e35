// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Forward passes of golden cases, and the logits of every row.

#include <ATen/core/Tensor.h>

#include "core/model/model.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace headscope::test::families {

/// Some cases run past max_position_embeddings on purpose.
inline at::Tensor forward(model::Model& model, const model::Batch& batch, model::Probe* probe = nullptr) {
    model::ForwardOptions options;
    options.beyond_positions = true;
    options.probe = probe;
    return model.forward(batch, options);
}

inline at::Tensor forward(model::Model& model, const GoldenModel& golden, model::Probe* probe = nullptr) {
    return forward(model, golden.batch, probe);
}

inline at::Tensor all_logits(model::Model& model, const at::Tensor& hidden) {
    return model.logits(hidden.flatten(0, 1)).unflatten(0, {hidden.size(0), hidden.size(1)});
}

}  // namespace headscope::test::families
