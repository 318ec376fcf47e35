// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/heads/head_logits.h"

#include <c10/core/InferenceMode.h>

#include "core/base/error.h"
#include "core/model/device.h"

namespace headscope::model {

at::Tensor head_logits(const Head& head, const ModelConfig& config, const at::Tensor& hidden_rows, Probe* probe) {
    if (!head.there) {
        throw Error(ErrorCode::usage, escaped(config.name),
                    "expected a model with a head for the vocabulary or classes", "found none in the file");
    }
    try {
        const c10::InferenceMode inference;
        at::Tensor rows = head(hidden_rows);
        constexpr LayerIndex no_layer{-1};
        if (probe && probe->wants("logits", no_layer)) probe->announce("logits", no_layer, on_processor(rows));
        return rows;
    } catch (...) {
        throw current_error("logits");
    }
}

}  // namespace headscope::model
