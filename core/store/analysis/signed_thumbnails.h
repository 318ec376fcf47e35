// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headscope::store {

struct SignedThumbnails {
    std::vector<float> mean, extreme;  ///< [heads, side, side]
};

/// Block means and values of largest magnitude of matrices with signs, `matrix` [heads, length, length]: cell (i, j)
/// lies in block (i side / length, j side / length), as in thumbnails of weights. Threads: any.
SignedThumbnails signed_thumbnails(std::span<const float> matrix, std::int64_t heads, std::int64_t length,
                                   std::int64_t side);

}  // namespace headscope::store
