// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// From a run's journal to its numbers: what the window shows, what run.h5 and the figures are made of.

#include <cstdint>
#include <filesystem>

#include "core/store/run_record.h"
#include "core/training/events.h"

namespace headscope::training {

/// The run that events come to, one after the other. What a rewind supersedes is dropped; a step that comes twice
/// replaces the earlier one and what followed it. Threads: one at a time.
class RunHistory {
public:
    /// Without thumbnails the record stays small: for views that show numbers only.
    explicit RunHistory(bool thumbnails = true) : thumbnails_(thumbnails) {}

    void add(const Event& event);
    const store::RunRecord& record() const noexcept { return record_; }
    store::RunRecord take() { return std::move(record_); }

private:
    void add(const Started& started, double time);
    void add(const Step& step);
    void add(const Validation& validation);
    void add(const ProbeResult& probe);
    void rewind(std::int64_t step);
    void cut_probes(std::int64_t last_step);

    bool thumbnails_;
    bool started_ = false;
    store::RunRecord record_;
};

/// A run folder as it is now, from its journal; from run.h5 where the journal is gone. A run whose last word is that it
/// goes on while nobody writes its journal is "interrupted". Errors: Error, also where the folder has neither.
store::RunRecord read_run(const std::filesystem::path& folder, bool thumbnails = true);

/// Makes FOLDER/run.h5 anew from the journal: at snapshots, at the end, after a crash. Errors: Error.
void build_run_file(const std::filesystem::path& folder);

/// True for a folder that has a journal, or run.h5.
bool is_run_folder(const std::filesystem::path& path);

}  // namespace headscope::training
