// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/evaluation/tasks.h"

namespace headscope::evaluation {

/// Throws Error(memory) for a model that does not fit (core/base/process/free_memory.h): weights, a batch, and keys and
/// values of its tokens; `speed` trains a second one. Before weights are read.
void expect_memory(const Request& request, const model::Inspection& inspection, checkpoint::LoadAs precision);

}  // namespace headscope::evaluation
