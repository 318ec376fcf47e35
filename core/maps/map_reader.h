// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/maps/head_map.h"
#include "core/maps/implicit_map.h"
#include "core/maps/mean_map.h"
#include "core/maps/norm_map.h"
#include "core/maps/rollout.h"
#include "core/store/analysis/analysis_file.h"

namespace headscope::maps {

/// One head's map of a file, ready to make tiles of; null when maps of this site were not recorded. Throws Error.
std::shared_ptr<const HeadMap> read_head_map(const store::AnalysisFile& file, std::int64_t sequence, std::int64_t site,
                                             std::int64_t head);

inline constexpr std::int64_t kMostMapBytes = 1LL << 30;  ///< of queries and keys of several maps in memory

/// The same in the mean over all sequences that are done, or the mean implicit matrix; null when there is none. Throws
/// Error (usage) where all together would take more than kMostMapBytes.
std::shared_ptr<const MeanMap> read_mean_map(const store::AnalysisFile& file, std::int64_t site, std::int64_t head);

/// The same in the mean over the heads of a site, of one sequence or (empty) of all that are done: an entry of the mean
/// for each head and sequence.
std::shared_ptr<const MeanMap> read_mean_of_heads(const store::AnalysisFile& file, std::optional<std::int64_t> sequence,
                                                  std::int64_t site);

/// Rollout through the layers of `site`'s stack up to its own. Null when maps of this site were not recorded. Throws
/// Error (usage) for cross-attention, where a layer below has several attentions or no map, and beyond kMostMapBytes.
std::shared_ptr<const Rollout> read_rollout(const store::AnalysisFile& file, std::int64_t sequence, std::int64_t site);

/// An implicit matrix as large as this is held whole; tiles of a larger one are read from the file, which must stay.
inline constexpr std::int64_t kMostImplicitBytes = 64LL << 20;

/// One head's implicit matrix; null where this site has none, or none was recorded.
std::shared_ptr<const ImplicitMap> read_implicit_map(const store::AnalysisFile& file, std::int64_t sequence,
                                                     std::int64_t site, std::int64_t head,
                                                     std::int64_t most_bytes = kMostImplicitBytes);

/// Norms of one head, or (empty) of all heads of the site together. Null when maps of this site were not recorded.
/// Throws Error (usage) where norms were not, or this attention has none.
std::shared_ptr<const NormMap> read_norm_map(const store::AnalysisFile& file, std::int64_t sequence, std::int64_t site,
                                             std::optional<std::int64_t> head);

}  // namespace headscope::maps
