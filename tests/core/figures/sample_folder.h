// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>

#include "core/store/run/run_record.h"

namespace headscope::test {

/// A run folder with the journal that comes to this record (sample_records.h), and its run.h5.
void write_run_folder(const std::filesystem::path& folder, const store::RunRecord& run);

}  // namespace headscope::test
