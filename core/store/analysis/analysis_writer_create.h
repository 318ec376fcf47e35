// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>

#include "core/store/analysis/analysis_header.h"
#include "core/store/hdf5/hdf5.h"
#include "core/store/analysis/schema.h"

namespace headscope::store {

/// The header as it is written: strings are UTF-8, and every sequence has as many pieces and offsets as ids. Throws
/// Error(internal) for headers that break this.
AnalysisHeader checked_header(const AnalysisHeader& header);

/// Creates the file with every dataset allocated, everything that is known beforehand written, flushed, and its space
/// reserved on the disk. From here on only bytes of datasets and attributes change, never HDF5's own structures, so a
/// process that dies at any moment leaves a file that opens; but for tables of score rules and, at the very end,
/// problems. `path` is the partial file.
hdf5::Handle create_analysis(const std::filesystem::path& path, const AnalysisHeader& header, const Schema& schema);

}  // namespace headscope::store
