// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

#include "core/store/analysis/analysis_header.h"
#include "core/store/hdf5/hdf5.h"

namespace headscope::store {

/// Reads and checks what an analysis file says about itself. `where` names the file in errors.
AnalysisHeader read_header(hid_t file, std::uint64_t file_bytes, const std::string& where);

}  // namespace headscope::store
