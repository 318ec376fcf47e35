// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The snapshots of a run: checkpoint folders snapshots/step-000123 that `analyze` opens, with the training state beside
// the weights and a manifest with the SHA-256 of every file that ties them together. Threads: one at a time.

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/checkpoint/save.h"
#include "core/run/run_folder.h"
#include "core/training/trainer/training_state.h"

namespace headscope::training {

/// Checks a snapshot against its manifest, byte for byte, and that what training needs is there. Throws Error format or
/// mismatch that names the file that is torn, changed or missing. Returns its state.
TrainingState verify_snapshot(const std::filesystem::path& folder, const Cancellation& cancellation);

/// Folders of a run's last `count` snapshots, the oldest first. Throws Error usage for fewer.
std::vector<std::filesystem::path> last_snapshots(const RunFolder& run, std::int64_t count);

class SnapshotStore {
public:
    /// Throws Error usage where snapshots/ is a link: nothing of another folder may be written or removed.
    explicit SnapshotStore(RunFolder run);

    /// Removes what a process that died left half written or half removed. Only for the run's owner.
    void clean() const;

    std::vector<std::int64_t> steps() const;  ///< of the folders that are there, rising
    std::filesystem::path folder(std::int64_t step) const { return run_.snapshots() / snapshot_name(step); }

    /// Writes step `state.step` aside, reads it back against its manifest, renames it; then `last` is it. Returns its
    /// bytes. One of that step that is there already and is whole is left as it is; a damaged one is put aside.
    std::uint64_t write(const TrainingState& state, checkpoint::SaveRequest request, const Cancellation& cancellation);

    /// The newest one that is whole; those after it are put aside as NAME.damaged, with a line each in `problems`.
    /// -1: none. Its state in `state`.
    std::int64_t newest_whole(TrainingState& state, std::vector<std::string>& problems,
                              const Cancellation& cancellation);

    /// snapshots/NAME leads to the snapshot of `step` from now on, where the file system has links; -1: there is no
    /// such link.
    void link(const std::string& name, std::int64_t step) const;

    /// True if the snapshot of this step exists, and this object wrote it or found it whole.
    bool holds(std::int64_t step) const;
    std::uint64_t bytes(std::int64_t step) const;  ///< of its files

    /// Removes all but the newest `keep` and `best` (-1: none), as long as two are left that were verified.
    void prune(std::int64_t keep, std::int64_t best);

private:
    void put_aside(std::int64_t step) const;

    RunFolder run_;
    std::set<std::int64_t> verified_;  ///< by this object: written by it, or read as whole
};

}  // namespace headscope::training
