// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/progress.h"

namespace headscope::app {

struct OwnRun {
    int status = 0;         ///< exit status, or 128 + signal
    double seconds = 0;     ///< that it took
    double peak_bytes = 0;  ///< of memory that it, or the largest of those that it started, held; no less than this one
    std::string last_line;  ///< of what it said on standard error, for reports of failures
};

/// Runs this program once more, with `arguments`, as a process of its own: what it takes is given back when it ends,
/// and when it crashes nothing else does. `before`: words in front of the program ("mpirun", "-n", "2"). Output goes to
/// `log`, appended. A stop is handed on, then waited for; throws Stopped after it. Ends with this process.
/// Error (io) when it cannot be started.
OwnRun run_own_program(const std::vector<std::string>& arguments, const std::filesystem::path& log,
                       const Cancellation& cancellation, const std::vector<std::string>& before = {});

}  // namespace headscope::app
