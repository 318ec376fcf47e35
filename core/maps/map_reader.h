// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>

#include "core/maps/head_map.h"
#include "core/maps/mean_map.h"
#include "core/store/analysis_file.h"

namespace headscope::maps {

/// One head's map of a file, ready to make tiles of; null when maps of this site were not recorded. Throws Error.
std::shared_ptr<const HeadMap> read_head_map(const store::AnalysisFile& file, std::int64_t sequence, std::int64_t site,
                                             std::int64_t head);

inline constexpr std::int64_t kMostMeanBytes = 1LL << 30;  ///< of queries and keys in memory

/// The same in the mean over all sequences that are done; null when there is none. Throws Error (usage) where all
/// together would take more than kMostMeanBytes.
std::shared_ptr<const MeanMap> read_mean_map(const store::AnalysisFile& file, std::int64_t site, std::int64_t head);

}  // namespace headscope::maps
