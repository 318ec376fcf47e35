// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/evaluation/tasks.h"
#include "core/model/load/memory.h"

namespace headscope::evaluation {

/// The residence of a model's weights. Throws Error(memory) for a model that does not fit
/// (core/base/process/free_memory.h): weights, a batch, and keys and values of its tokens; `speed` trains a second one.
/// Before weights are read.
model::Residence expect_memory(const Request& request, const model::Inspection& inspection, model::WeightChoice choice);

}  // namespace headscope::evaluation
