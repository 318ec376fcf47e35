// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/head_map_reader.h"

#include <utility>

namespace headscope::workspace {

std::shared_ptr<const tiles::HeadMap> read_head_map(const store::AnalysisFile& file, std::int64_t sequence,
                                                    std::int64_t site, std::int64_t head) {
    auto map = file.map_of_head(sequence, site, head);
    if (!map) return nullptr;
    return std::make_shared<const tiles::HeadMap>(std::move(map->query), std::move(map->key),
                                                  std::move(map->row_constant), map->key_size, std::move(map->rule));
}

}  // namespace headscope::workspace
