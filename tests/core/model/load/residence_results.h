// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/model/model.h"
#include "core/model/towers/cache.h"

namespace headscope::test::residences {

/// Hidden states and logits of the whole batch, and of the same piece by piece where the model has a cache.
inline std::vector<at::Tensor> results(model::Model& model, const model::Batch& batch) {
    model::ForwardOptions options;
    options.beyond_positions = true;
    std::vector<at::Tensor> found{model.forward(batch, options)};
    if (model.has_head() || model.has_classes()) found.push_back(model.logits(found[0].flatten(0, 1)));
    const bool pieces = model.causal() && !model.config().encoder && !batch.padded() && batch.ids.size(1) > 2;
    if (!pieces) return found;
    const auto cache = model.new_cache();
    options.cache = cache.get();
    for (const std::int64_t first : {std::int64_t{0}, batch.ids.size(1) - 1}) {
        model::Batch piece = batch;
        piece.ids = batch.ids.slice(1, first, first == 0 ? batch.ids.size(1) - 1 : batch.ids.size(1)).contiguous();
        found.push_back(model.forward(piece, options));
    }
    return found;
}

}  // namespace headscope::test::residences
