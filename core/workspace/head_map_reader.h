// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>

#include "core/store/analysis_file.h"
#include "core/tiles/head_map.h"

namespace headscope::workspace {

/// One head's map of a file, ready to make tiles of; null when maps of this site were not recorded. Throws Error.
std::shared_ptr<const tiles::HeadMap> read_head_map(const store::AnalysisFile& file, std::int64_t sequence,
                                                    std::int64_t site, std::int64_t head);

}  // namespace headscope::workspace
