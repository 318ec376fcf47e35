// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Other mixers in the place of some layers' ones.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "core/base/progress.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/fresh/mixer_swap.h"
#include "core/model/load/build.h"
#include "core/model/load/tensor_plan.h"

namespace headscope::model {

struct Swapped {
    Blueprint blueprint;
    TensorPlan plan;  ///< with those of the swapped layers' tensors fresh that the file lacks, and another head's
};

/// A checkpoint's blueprint with the mixers and the head of `swap` in place of its own; as it is where that changes
/// nothing. The result is a native model (core/model/load/native_config.h). Errors: limit for a layer that there is
/// not, unsupported for an unknown mixer or a model that the native format cannot say.
Swapped swap_mixers(const checkpoint::Checkpoint& file, const MixerSwap& swap);

/// Writes the swapped model as a checkpoint folder (checkpoint::convert), tensor by tensor: what the swapped layers do
/// not need is left out, what they lack is fresh from `seed`. `as`: the type of floating-point tensors; as stored,
/// fresh ones have the type that the token embedding has. Returns the names of those that are fresh.
std::vector<std::string> convert_swapped(const checkpoint::Checkpoint& file, const MixerSwap& swap, std::uint64_t seed,
                                         const std::filesystem::path& destination, checkpoint::LoadAs as,
                                         Progress& progress, const Cancellation& cancellation);

}  // namespace headscope::model
