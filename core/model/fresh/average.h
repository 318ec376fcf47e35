// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "core/base/progress.h"
#include "core/checkpoint/checkpoint.h"

namespace headscope::model {

/// Writes the mean of checkpoints of one model: every floating-point tensor is their mean in float64, rounded once to
/// `as` (stored: its own type); integers, booleans and side files are the last one's. Memory: three copies of the
/// largest tensor. Errors besides convert()'s: usage for fewer than two; unsupported for quantized weights; mismatch,
/// with folder and tensor or key, where names, shapes, types, integer tensors or configurations differ.
void convert_average(const std::vector<std::shared_ptr<const checkpoint::Checkpoint>>& files,
                     const std::filesystem::path& destination, checkpoint::LoadAs as, Progress& progress,
                     const Cancellation& cancellation);

}  // namespace headscope::model
