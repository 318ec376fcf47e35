// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Speed of analyses on this machine, for the estimate in the text panel: measured once with the bundled sample, stored
// in the user's folder, and corrected by every run.

#include <filesystem>
#include <optional>

#include "core/base/progress.h"

namespace headscope::app {

/// Measures multiplications a second by analyzing some made-up tokens with the checkpoint at `sample`: a second or
/// less. The results go to a file in `folder` that is removed. For the compute thread. Empty: the run was too short.
/// Throws Error, Stopped.
std::optional<double> measure_rate(const std::filesystem::path& sample, const std::filesystem::path& folder,
                                   const Cancellation& cancellation);

/// The stored rate for this processor and number of threads; empty: none. Never throws.
std::optional<double> load_rate(const std::filesystem::path& folder, int threads);
/// Throws Error.
void save_rate(const std::filesystem::path& folder, int threads, double rate);

}  // namespace headscope::app
