// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/head_map_reader.h"

namespace headscope::workspace {
namespace {

std::vector<float> part(const std::vector<float>& all, std::int64_t index, std::int64_t size) {
    return {all.begin() + index * size, all.begin() + (index + 1) * size};
}

}  // namespace

std::shared_ptr<const tiles::HeadMap> read_head_map(const store::AnalysisFile& file, std::int64_t sequence,
                                                    std::int64_t site, std::int64_t head) {
    const auto map = file.map(sequence, site);
    if (!map) return nullptr;
    const std::int64_t group = head / (map->heads / map->key_value_heads);
    return std::make_shared<const tiles::HeadMap>(part(map->query, head, map->queries * map->key_size),
                                                  part(map->key, group, map->keys * map->key_size),
                                                  part(map->row_constant, head, map->queries), map->key_size,
                                                  tiles::rule_of_head(map->rule, 0, head, map->heads));
}

}  // namespace headscope::workspace
