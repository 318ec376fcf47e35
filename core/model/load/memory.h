// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The memory that a model takes, from its description alone: before weights are read. Bytes. Threads: any.

#include <functional>
#include <string>

#include "core/checkpoint/checkpoint.h"
#include "core/model/model.h"

namespace headscope::model {

/// Bytes of a number of weights that are read as `precision`.
double number_bytes(checkpoint::LoadAs precision);

/// Bytes of the weights, read as `precision`.
double weight_bytes(const Inspection& inspection, checkpoint::LoadAs precision);
/// Bytes that one layer needs for `rows` tokens; the allocator keeps its buffers side by side.
double pass_bytes(const ModelConfig& tower, double rows, double number);
/// Bytes of the keys and values of `rows` tokens in all layers; mixers with a state take less.
double cache_bytes(const ModelConfig& config, double rows, double number);
/// Bytes of the largest chunk of logits (Model::logit_rows) of `rows` tokens; 0 without a head.
double logit_bytes(const Inspection& inspection, double rows);

/// Bytes of weights, a pass of `rows` tokens through a tower and the head, and keys and values of `cached` tokens.
double reading_bytes(const Inspection& inspection, double rows, double cached, checkpoint::LoadAs precision);

/// The option of a command that reads weights in bfloat16, and the advice if not even that fits.
struct DtypeAdvice {
    std::string option;  ///< "--dtype bfloat16"; empty: the command has none
    std::string otherwise;
};

/// Throws Error(memory), naming the option that fits, where `bytes(precision)` are not free
/// (core/base/process/free_memory.h).
void expect_memory_for(const std::function<double(checkpoint::LoadAs)>& bytes, checkpoint::LoadAs precision,
                       const DtypeAdvice& advice);

}  // namespace headscope::model
