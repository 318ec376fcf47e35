// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// From a run's journal to the numbers that run.h5 and the figures are made of.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/run/run_story.h"
#include "core/store/run/run_record.h"

namespace headscope::training {

/// The run that events come to, one after the other: its story (run_story.h), with all that was said and done beside.
/// Threads: one at a time.
class RunHistory {
public:
    /// Without thumbnails the record stays small: for views that show numbers only.
    explicit RunHistory(bool thumbnails = true) : thumbnails_(thumbnails) {}

    void add(const Event& event);
    /// The record; the history is used up then.
    store::RunRecord take();

private:
    bool thumbnails_;
    RunStory story_;
    std::vector<store::RunControl> controls_;
    std::vector<store::RunLogLine> log_;
};

/// The current state of a run folder, from its journal, or from run.h5 if the journal is missing. "interrupted" if the
/// last state is running but no process writes the journal. Errors: Error, also if the folder has neither.
store::RunRecord read_run(const std::filesystem::path& folder, bool thumbnails = true);

/// Rebuilds FOLDER/run.h5 from the journal: at snapshots, at the end, after a crash. Errors: Error.
void build_run_file(const std::filesystem::path& folder);

/// Rebuilds FOLDER/run.h5 if it is missing or older than the journal and no process trains the run (a crash). Does
/// nothing without write access: readers then use the journal. Throws only Stopped.
void mend_run_file(const std::filesystem::path& folder);

/// True for a folder that has a journal, or run.h5.
bool is_run_folder(const std::filesystem::path& path);

}  // namespace headscope::training
