// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/progress.h"
#include "core/model/probe.h"

namespace headscope::analysis {

/// Dense attention weights of batch row `b`, head by head, in blocks of rows of at most 32 MB that are computed in
/// parallel and handed over in order on the calling thread. rows: [n, keys]. Throws Stopped.
using RowBlock = std::function<void(std::int64_t head, std::int64_t first, std::span<const float> rows)>;
void for_dense_rows(const model::AttentionRecord& record, std::int64_t b, const Cancellation& cancellation,
                    const RowBlock& take);

/// A pair's self-attention: [heads, 3, 3], the weight that a query of a region gives to the keys of a region, averaged
/// over queries that see a key (store::region_indicators()). `regions`: 0, 1 or 2 for each token. NaN: no query.
std::vector<double> region_means(const model::AttentionRecord& record, std::int64_t b,
                                 std::span<const std::int32_t> regions, const Cancellation& cancellation);

}  // namespace headscope::analysis
