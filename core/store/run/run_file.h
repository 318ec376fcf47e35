// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// `run.h5` of a run folder (docs/file-formats.md, "Run folders"): a training run's numbers for h5py, xarray and us. It
// is made of the run's journal (core/run/run_history.h), whole each time, and can always be made again. Threads:
// any, under Hdf5Lock.

#include <filesystem>

#include "core/store/run/run_record.h"

namespace headscope::store {

/// Written aside, closed, read again, synced and renamed: whole, or what was there before. Long texts are cut (a log
/// line at 4 kB, a sample at 16 kB). Errors: Error io, usage.
void write_run_file(const std::filesystem::path& path, const RunRecord& record);

/// Checks format, shapes, types and storage of everything, as AnalysisFile does; one Error for what is wrong.
/// `name` of the record is that of the file's folder.
RunRecord read_run_file(const std::filesystem::path& path);

}  // namespace headscope::store
