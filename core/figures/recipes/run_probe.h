// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Indicators of a run's probes as numbers to draw. Throws Error usage for an indicator that the run has not.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/figures/recipes/radar_rule.h"
#include "core/store/run/run_record.h"

namespace headscope::figures {

/// Recorded indicators of the run's probes, local focus by its distances: entropy, ..., local_focus_0, ...
/// local_focus_3.
std::vector<std::string> probe_indicators(const store::RunRecord& run);

/// One indicator of one site over the probes: the mean over its heads, or one head. What belongs to the layer is that.
std::vector<double> probe_values(const store::RunRecord& run, const std::string& indicator, std::int64_t site,
                                 std::optional<std::int64_t> head = {});

/// The spokes of a radar at one probe, NaN where the run has no such indicator.
RadarValues probe_radar(const store::RunRecord& run, std::int64_t probe, std::int64_t site,
                        std::optional<std::int64_t> head = {});

/// Extents over all layers and all probes, so that a radar keeps its scale from step to step.
RadarExtents probe_extents(const store::RunRecord& run, std::optional<std::int64_t> head = {});

/// The last probe at or before a step; the first one where there is none before. -1 without probes.
std::int64_t probe_at(const store::RunRecord& run, std::int64_t step);

/// Thumbnail of one head at one probe, [size, size]; empty when there is none.
std::vector<float> probe_thumbnail(const store::RunRecord& run, std::int64_t probe, std::int64_t site,
                                   std::int64_t head);

}  // namespace headscope::figures
