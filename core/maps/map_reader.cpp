// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/maps/map_reader.h"

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/os_error.h"

namespace headscope::maps {

std::shared_ptr<const HeadMap> read_head_map(const store::AnalysisFile& file, std::int64_t sequence, std::int64_t site,
                                             std::int64_t head) {
    auto map = file.map_of_head(sequence, site, head);
    if (!map) return nullptr;
    return std::make_shared<const HeadMap>(std::move(map->query), std::move(map->key), std::move(map->row_constant),
                                           map->key_size, std::move(map->rule));
}

std::shared_ptr<const MeanMap> read_mean_map(const store::AnalysisFile& file, std::int64_t site, std::int64_t head) {
    const auto sequences = std::ssize(file.header().sequences);
    std::vector<std::shared_ptr<const HeadMap>> maps;
    std::int64_t bytes = 0;
    for (std::int64_t s = 0; s < sequences; ++s) {
        if (!file.site_done(s, site)) continue;
        auto map = read_head_map(file, s, site, head);
        if (!map) continue;
        bytes += map->bytes();
        if (bytes > kMostMeanBytes) {
            throw Error(ErrorCode::usage, "mean over the sequences of " + shown(file.path()),
                        "expected at most " + std::to_string(kMostMeanBytes >> 20) + " MiB of queries and keys",
                        "found more in " + std::to_string(maps.size() + 1) + " of " + std::to_string(sequences) +
                            " sequences: choose one of them");
        }
        maps.push_back(std::move(map));
    }
    return maps.empty() ? nullptr : std::make_shared<const MeanMap>(std::move(maps));
}

}  // namespace headscope::maps
