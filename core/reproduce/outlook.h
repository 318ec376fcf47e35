// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Compares the tokens that each run would see in the given minutes with those that the paper's claims need. By an
// earlier calibration on the same machine, kept in the user's cache (replays.json).

#include <filesystem>
#include <optional>
#include <string>

#include "core/reproduce/plan.h"

namespace headscope::reproduce {

struct Outlook {
    double minutes = 0;
    double tokens = 0;          ///< of each run
    double needed = 0;          ///< fewer decide nothing
    double minutes_needed = 0;  ///< at that pace; 0: more than ten weeks

    bool enough() const { return tokens >= needed; }
    /// "6 minutes give each run 120 k tokens; ...": a warning; empty where they are enough.
    std::string text() const;
};

/// Error format for a pace that lacks one of the paper's models.
Outlook outlook(const Paper& paper, const Settings& settings, const Pace& pace);
/// The tokens of a plan that goes on: more minutes do not change its steps.
Outlook outlook(const Plan& plan);

/// Keeps the pace of a paper in `file`, in place of an older one. Throws Error io.
void keep_pace(const std::filesystem::path& file, const std::string& paper, const std::string& processor,
               const Pace& pace);
/// The kept pace of a paper for this processor and number of threads. A file that cannot be read holds nothing.
std::optional<Pace> kept_pace(const std::filesystem::path& file, const std::string& paper, const std::string& processor,
                              std::int64_t threads);

/// Keeps the pace in the cache. A cache that cannot be written is done without.
void keep_replay_pace(const std::string& paper, const Pace& pace);
/// A sentence if the minutes cannot decide the paper's claims, by its last calibration on this machine; empty
/// if they can, or if none was kept. Reads a file: not for the window's thread.
std::string minutes_warning(const std::string& paper, const Settings& settings);

}  // namespace headscope::reproduce
