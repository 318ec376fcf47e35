// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What the files of Reproduction share.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace headscope::app {

inline constexpr std::uint64_t kLargestPlan = 1 << 20;  ///< bytes of plan.json, and of the table of costs

/// Seconds of a clock that is never set back.
double now();

/// Whole, or not there.
void write_file(const std::filesystem::path& path, const std::string& text);

/// Of the later steps of a run, from short to long: the first ones warm caches up.
std::vector<double> step_seconds(const std::filesystem::path& run);

}  // namespace headscope::app
