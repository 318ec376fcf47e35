// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/analysis/signed_thumbnails.h"

#include <cmath>

namespace headscope::store {

SignedThumbnails signed_thumbnails(std::span<const float> matrix, std::int64_t heads, std::int64_t length,
                                   std::int64_t side) {
    const auto cells = static_cast<std::size_t>(side * side);
    SignedThumbnails all;
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(side));
    for (std::int64_t i = 0; i < length; ++i) ++sizes[static_cast<std::size_t>(i * side / length)];
    const float* value = matrix.data();
    for (std::int64_t h = 0; h < heads; ++h) {
        std::vector<double> sums(cells);
        std::vector<float> extremes(cells);
        for (std::int64_t i = 0; i < length; ++i) {
            for (std::int64_t j = 0; j < length; ++j, ++value) {
                const auto at = static_cast<std::size_t>(i * side / length * side + j * side / length);
                sums[at] += static_cast<double>(*value);
                if (!(std::abs(*value) <= std::abs(extremes[at]))) extremes[at] = *value;
            }
        }
        for (std::size_t at = 0; at < cells; ++at) {
            const auto side_of = static_cast<std::size_t>(side);
            const auto pairs = static_cast<double>(sizes[at / side_of] * sizes[at % side_of]);
            all.mean.push_back(static_cast<float>(sums[at] / pairs));
        }
        all.extreme.insert(all.extreme.end(), extremes.begin(), extremes.end());
    }
    return all;
}

}  // namespace headscope::store
