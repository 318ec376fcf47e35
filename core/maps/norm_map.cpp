// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/maps/norm_map.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/error.h"

namespace headscope::maps {

NormMap::NormMap(std::vector<std::shared_ptr<const HeadMap>> maps, std::vector<float> products)
    : maps_(std::move(maps)), products_(std::move(products)) {
    const auto heads = static_cast<std::int64_t>(maps_.size());
    const bool fits = heads > 0 && std::ssize(products_) == keys() * heads * heads &&
                      std::all_of(maps_.begin(), maps_.end(), [&](const std::shared_ptr<const HeadMap>& map) {
                          return map->queries() == queries() && map->keys() == keys();
                      });
    if (!fits) {
        throw Error(ErrorCode::internal, "norms", "expected maps of one size, and products of their heads",
                    "found " + std::to_string(heads) + " maps and " + std::to_string(products_.size()) + " products");
    }
    // |sum of a_h x_h| <= sum of |x_h| where all a_h are at most 1.
    for (std::int64_t j = 0; j < keys(); ++j) {
        float sum = 0;
        for (std::int64_t h = 0; h < heads; ++h)
            sum += std::sqrt(products_[static_cast<std::size_t>((j * heads + h) * heads + h)]);
        most_ = std::max(most_, sum);
    }
}

std::int64_t NormMap::bytes() const {
    auto sum = static_cast<std::int64_t>(products_.size() * sizeof(float));
    for (const auto& map : maps_) sum += map->bytes();
    return sum;
}

std::pair<std::int64_t, std::int64_t> NormMap::seen(std::int64_t q_begin, std::int64_t q_end) const {
    return maps_.front()->seen(q_begin, q_end);
}

std::vector<std::pair<std::int64_t, std::int64_t>> NormMap::allowed(std::int64_t query) const {
    return maps_.front()->allowed(query);
}

void NormMap::weights_into(const Cells& cells, float* out) const {
    const auto heads = static_cast<std::int64_t>(maps_.size()), count = cells.queries() * cells.keys();
    std::vector<float> weights(static_cast<std::size_t>(heads * count));
    for (std::int64_t h = 0; h < heads; ++h)
        maps_[static_cast<std::size_t>(h)]->weights_into(cells, weights.data() + h * count);
    for (std::int64_t at = 0; at < count; ++at) {
        const float* product = products_.data() + (cells.k_begin + at % cells.keys()) * heads * heads;
        double square = 0;
        for (std::int64_t g = 0; g < heads; ++g) {
            double row = 0;
            for (std::int64_t h = 0; h < heads; ++h)
                row += static_cast<double>(product[g * heads + h]) * static_cast<double>(weights[h * count + at]);
            square += row * static_cast<double>(weights[g * count + at]);
        }
        out[at] = static_cast<float>(std::sqrt(std::max(square, 0.0)));
    }
}

}  // namespace headscope::maps
