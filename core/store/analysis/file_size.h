// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/store/analysis/analysis_header.h"

namespace headscope::store {

/// Bytes that an analysis file of this header will have, within some percent: everything is allocated when it is
/// created, so it is known before. Any thread.
double expected_file_bytes(const AnalysisHeader& header);

}  // namespace headscope::store
