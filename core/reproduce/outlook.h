// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Whether the minutes of a replay can decide its paper's claims: the tokens that each run would see, against those that
// the claims need. By the pace of a calibration, which is kept for the next replay on the same machine. No torch here.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "core/reproduce/plan.h"

namespace headscope::reproduce {

/// How fast the runs of a paper were on a machine.
struct Pace {
    std::string size;  ///< of the models that were timed
    std::int64_t threads = 1, workers = 1;
    double spent = 0, end = 0;                   ///< seconds of the calibration, of figures and report
    std::map<std::string, double> step_seconds;  ///< by mixer or model; of the thesis "MODEL/STAGE"
    std::map<std::string, double> overhead;      ///< seconds of a run beside its steps: "run", of the thesis by stage

    bool operator==(const Pace&) const = default;
};

struct Outlook {
    double minutes = 0;
    double tokens = 0;          ///< of each run
    double needed = 0;          ///< fewer decide nothing
    double minutes_needed = 0;  ///< at that pace; 0: more than ten weeks

    bool enough() const { return tokens >= needed; }
    /// "6 minutes give each run 120 k tokens; ...": a warning; empty where they are enough.
    std::string text() const;
};

/// Tokens of a run that decide a paper's claims.
double tokens_to_judge(const std::string& paper);
/// Error usage for an unknown paper, format for a pace that lacks one of its models.
Outlook outlook(const std::string& paper, const Settings& settings, const Pace& pace);

/// Keeps the pace of a paper in `file`, in place of an older one. Throws Error io.
void keep_pace(const std::filesystem::path& file, const std::string& paper, const std::string& processor,
               const Pace& pace);
/// What was kept of a paper for this processor and number of threads. A file that cannot be read holds nothing.
std::optional<Pace> kept_pace(const std::filesystem::path& file, const std::string& paper, const std::string& processor,
                              std::int64_t threads);

}  // namespace headscope::reproduce
