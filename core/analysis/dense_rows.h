// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/base/progress.h"
#include "core/model/probe.h"

namespace headscope::analysis {

/// Dense attention weights of batch row `b`, head by head, in blocks of rows of at most 32 MB that are computed in
/// parallel and handed over in order on the calling thread. rows: [n, keys]. Throws Stopped.
using RowBlock = std::function<void(std::int64_t head, std::int64_t first, std::span<const float> rows)>;
void for_dense_rows(const model::AttentionRecord& record, std::int64_t b, const Cancellation& cancellation,
                    const RowBlock& take);

}  // namespace headscope::analysis
