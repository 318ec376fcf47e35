// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Measured costs of a model, next to the papers' formulas (mixer_cost.h): operations of the operators that ran, memory
// of tensors, bytes of caches. Threads: the compute thread. Errors: Error, Stopped.

#include <cstdint>
#include <string>

#include "core/base/progress.h"
#include "core/cost/cost_table.h"
#include "core/model/trainable.h"

namespace headscope::cost {

struct MeasureOptions {
    std::int64_t batch = 1;
    std::int64_t length = 256;
    bool training = true;
    at::Device device = at::kCPU;  ///< of measure_mixer()'s stack
    const Cancellation* cancellation = nullptr;
};

/// Random tokens go through the model, of one tower, on its device; an encoder decodes nothing (NaN). Takes what a
/// forward pass and a training step of that size take, on a GPU twice: its first calls, which load libraries, do not
/// count. The device is idle at each reading of the clock. Operations are NaN where a GPU's kernels ran
/// (FlopCounter::is_complete).
MeasuredModel measure(model::Trainable& trainable, const MeasureOptions& options);

/// A fresh stack of `layers` layers of one mixer (a decoder; an encoder where decoders cannot have it) with the sizes
/// of a preset's or checkpoint's configuration and a small vocabulary: what a mixer costs at these sizes, without
/// building the whole model.
MeasuredModel measure_mixer(const std::string& config_json, const std::string& mixer, std::int64_t layers,
                            const MeasureOptions& options);

/// Fills in what was measured at every row of a table but those of mixers that cannot have its sizes, on stacks of two
/// layers (the second one's mixer is taken) on a device. `config_json`: a native configuration of the table's sizes.
void measure_table(CostTable& table, const std::string& config_json, Progress& progress,
                   const Cancellation& cancellation, const at::Device& device = at::kCPU);

}  // namespace headscope::cost
