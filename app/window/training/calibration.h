// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// How fast this machine analyses, for the time that the text panel tells before a run: measured once with the bundled
// sample, kept in a file of the user's folder, and made better by every run.

#include <filesystem>
#include <optional>

#include "core/base/progress.h"

namespace headscope::app {

/// Multiplications a second, by analysing some made-up tokens with the checkpoint at `sample`: a second or less. The
/// results go to a file in `folder` that is removed. For the thread that computes. Empty: it was too quick to tell.
/// Throws Error, Stopped.
std::optional<double> measure_rate(const std::filesystem::path& sample, const std::filesystem::path& folder,
                                   const Cancellation& cancellation);

/// What was kept for this processor and so many threads; empty: nothing. Never throws.
std::optional<double> load_rate(const std::filesystem::path& folder, int threads);
/// Throws Error.
void save_rate(const std::filesystem::path& folder, int threads, double rate);

}  // namespace headscope::app
