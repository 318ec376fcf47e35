// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "core/base/machine/memory_room.h"
#include "core/evaluation/tasks.h"
#include "core/model/load/memory.h"

namespace headscope::evaluation {

/// Tokens of a forward pass (ScoreOptions::batch_tokens), halved down to 256 until the evaluation fits into `room`
/// bytes (model::fitting_batch_tokens).
std::int64_t fitting_batch_tokens(const Request& request, const model::Inspection& inspection,
                                  const model::WeightChoice& choice, double room = own_memory_room());

/// The residence of a model's weights. Throws Error(memory) for a model that does not fit
/// (core/base/process/free_memory.h): weights, a batch, and keys and values of its tokens; `speed` trains a second one.
/// Before weights are read.
model::Residence expect_memory(const Request& request, const model::Inspection& inspection, model::WeightChoice choice);

/// Bytes of hidden states that may wait in memory where weights stream (ScoreOptions::waiting): those of the request,
/// or what the rest of the evaluation leaves of `room`, and on a GPU of its room. A room of 0 is not known, and leaves
/// all of them.
double fitting_waiting_bytes(const Request& request, const model::Inspection& inspection, checkpoint::LoadAs precision,
                             double room = own_memory_room(), double device_room = model::model_device_room());

}  // namespace headscope::evaluation
