// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/blocks.h"
#include "core/model/probe.h"

namespace headscope::model {

/// Model::logits with a head: refuses a missing one, announces "logits".
at::Tensor head_logits(const Head& head, const ModelConfig& config, const at::Tensor& hidden_rows, Probe* probe);

}  // namespace headscope::model
