// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/run/journal.h"

namespace headscope::training {

/// Paths in a run's folder (docs/file-formats.md, "Run folders").
struct RunFolder {
    std::filesystem::path path;

    std::filesystem::path job() const { return path / "job.toml"; }
    std::filesystem::path journal() const { return path / kJournalName; }
    std::filesystem::path run_file() const { return path / "run.h5"; }
    std::filesystem::path snapshots() const { return path / "snapshots"; }
    std::filesystem::path control() const { return path / "control"; }

    /// A run lies there: it has a job and a journal, or a job alone where it was killed before its first event.
    bool exists() const;
    /// True if the run was killed while its folder was made: a journal without events, parts of job.toml. A new run may
    /// start there.
    bool never_began() const;
    /// Removes parts of job.toml and run.h5 that a kill left. Hold the journal's lock.
    void remove_partials() const;
};

/// "step-000123".
std::string snapshot_name(std::int64_t step);
/// 123 of "step-000123"; -1 for other names.
std::int64_t snapshot_step(const std::string& name);

}  // namespace headscope::training
