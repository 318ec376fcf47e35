// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>

namespace headscope::training {

/// A job's (TOML) name for its runs; empty: none, or it cannot be read as a job. Any thread.
std::string job_name(const std::string& job);

/// "my first run, step 40" for a snapshot where it lies in its run's folder, or for the links `last` and `best` beside
/// it; empty: the path leads to none, or is a link elsewhere, whose name somebody chose. Reads the job. Any thread.
std::string snapshot_title(const std::filesystem::path& snapshot);

}  // namespace headscope::training
