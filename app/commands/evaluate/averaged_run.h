// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Mean of a run's last snapshots, for one evaluation. Errors: those of model::convert_average, usage for a path that is
// no run.

#include <cstdint>
#include <filesystem>

#include "core/base/progress.h"

namespace headscope::app {

/// A checkpoint in the folder of temporary files (TMPDIR), removed with the object.
class AveragedRun {
public:
    AveragedRun(const std::filesystem::path& run, std::int64_t last, Progress& progress,
                const Cancellation& cancellation);
    ~AveragedRun();
    AveragedRun(const AveragedRun&) = delete;
    AveragedRun& operator=(const AveragedRun&) = delete;

    std::filesystem::path checkpoint() const { return folder_ / "mean"; }
    const std::filesystem::path& newest() const { return newest_; }  ///< snapshot of the mean

private:
    std::filesystem::path folder_, newest_;
};

}  // namespace headscope::app
