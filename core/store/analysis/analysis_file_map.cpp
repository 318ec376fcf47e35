// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/analysis/analysis_file_impl.h"
#include "core/store/analysis/rule_storage.h"
#include "core/store/hdf5/hdf5_lock.h"
#include "kernels/head_rule.h"

namespace headscope::store {

kernels::AttentionInput AnalysisFile::Map::input() const {
    kernels::AttentionInput input;
    input.query = {query.data(),
                   kernels::ElementType::float32,
                   1,
                   heads,
                   queries,
                   key_size,
                   heads * queries * key_size,
                   queries * key_size,
                   key_size};
    input.key = {key.data(),
                 kernels::ElementType::float32,
                 1,
                 key_value_heads,
                 keys,
                 key_size,
                 key_value_heads * keys * key_size,
                 keys * key_size,
                 key_size};
    input.value = input.key;  // attention_weights reads no values; a view that is valid all the same
    input.rule = &rule;
    return input;
}

std::optional<AnalysisFile::Map> AnalysisFile::map(std::int64_t s, std::int64_t site) const {
    return read_map(s, site, std::nullopt);
}

std::optional<AnalysisFile::Map> AnalysisFile::map_of_head(std::int64_t s, std::int64_t site, std::int64_t head) const {
    return read_map(s, site, head);
}

std::optional<AnalysisFile::Map> AnalysisFile::read_map(std::int64_t s, std::int64_t site,
                                                        std::optional<std::int64_t> head) const {
    const Hdf5Lock lock;
    const std::string group = map_group(s, site);
    const DatasetSpec* query = impl_->schema.find(group + "/query");
    if (query == nullptr || !site_done(s, site)) return std::nullopt;
    impl_->refresh();
    const DatasetSpec& key = impl_->spec(group + "/key");
    const DatasetSpec& row_constant = impl_->spec(group + "/row_constant");
    const std::string at = impl_->where + ", " + group;
    const std::int64_t heads = query->shape[0], groups = key.shape[0];
    if (groups == 0 || heads % groups != 0) {
        throw Error(ErrorCode::format, at, "expected heads that the key-value heads divide",
                    "found " + std::to_string(heads) + " and " + std::to_string(groups));
    }
    if (head && (*head < 0 || *head >= heads)) {
        throw Error(ErrorCode::usage, at, "expected a head from 0 to " + std::to_string(heads - 1),
                    "found " + std::to_string(*head));
    }
    Map map;
    map.heads = head ? 1 : heads;
    map.key_value_heads = head ? 1 : groups;
    map.queries = query->shape[1];
    map.keys = key.shape[1];
    map.key_size = query->shape[2];
    const std::int64_t first = head.value_or(0), first_group = head ? *head / (heads / groups) : 0;
    map.query = impl_->floats(*query, {first, 0, 0}, {map.heads, map.queries, map.key_size});
    map.key = impl_->floats(key, {first_group, 0, 0}, {map.key_value_heads, map.keys, map.key_size});
    map.row_constant = impl_->floats(row_constant, {first, 0}, {map.heads, map.queries});
    map.rule = read_rule(impl_->file(), group, heads, impl_->bytes(), impl_->where);
    const kernels::BlockVisibility& blocks = map.rule.blocks;
    if (blocks.block_size > 0 && (map.keys + blocks.block_size - 1) / blocks.block_size > blocks.blocks) {
        throw Error(ErrorCode::format, at, "expected block visibility for every key", "found too few blocks");
    }
    if (head) map.rule = kernels::rule_of_head(map.rule, 0, *head, heads);
    return map;
}

}  // namespace headscope::store
