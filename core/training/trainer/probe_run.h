// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/model/model.h"
#include "core/run/events.h"

namespace headscope::training {

/// Blocks a side of the thumbnails that go with a probe.
inline constexpr std::int64_t kProbeThumbnail = 32;

/// Distances whose biases a probe keeps, as far as a site's table of them reaches: "bias_0", ..., "bias_1024".
inline constexpr std::array<std::int64_t, 7> kProbeDistances{0, 1, 4, 16, 64, 256, 1024};

/// All indicators of every site and head on what a batch reads, by the model's own forward pass and the statistics of
/// its kernels: one pass, no second attention. Thumbnails are of sites that are as square as the first one. Means over
/// the sequences; NaN where a site has no matrix. Of parameters: `offset` of the elastic normaliser and biases by
/// distance. `step` is left to the caller. Threads: the compute thread. Throws Stopped when cancelled.
ProbeResult measure(model::Model& model, const model::Batch& batch, const Cancellation& cancellation);

}  // namespace headscope::training
