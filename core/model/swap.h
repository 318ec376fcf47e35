// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Other mixers in the place of some layers' ones.

#include <map>
#include <string>

#include "core/checkpoint/checkpoint.h"
#include "core/model/build.h"
#include "core/model/tensor_plan.h"

namespace headscope::model {

struct Swapped {
    Blueprint blueprint;
    TensorPlan plan;  ///< with those of the swapped layers' tensors fresh that the file lacks
};

/// A checkpoint's blueprint with the mixers of `swap` (layers from 0) in place of its own; with an empty `swap` as it
/// is. The result is a native model (core/model/native_config.h). Errors: limit for a layer that there is not,
/// unsupported for an unknown mixer or a model that the native format cannot say.
Swapped swap_mixers(const checkpoint::Checkpoint& file, const std::map<int, std::string>& swap);

}  // namespace headscope::model
