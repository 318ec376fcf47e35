// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/maps/head_map.h"
#include "core/maps/value_map.h"

namespace headscope::maps {

/// Norm-based attention (Kobayashi et al. 2020, arXiv 2004.10102): the length of what key j gives to query i. Of one
/// head |a_ij v_j W_O^h|, of a layer |sum over h of a^h_ij v_j W_O^h|, where W_O^h are the rows of the output
/// projection that read head h, and v_j has its bias. The projection's bias, which no key gives, and norms behind it
/// are left out.
class NormMap final : public ValueMap {
public:
    /// `products` [keys, heads, heads]: of (v_j W_O^g) and (v_j W_O^h) for the heads of `maps`. At least one map, all
    /// of one size; throws Error (internal) where they are not.
    NormMap(std::vector<std::shared_ptr<const HeadMap>> maps, std::vector<float> products);

    std::int64_t queries() const override { return maps_.front()->queries(); }
    std::int64_t keys() const override { return maps_.front()->keys(); }
    std::int64_t bytes() const override;
    /// No value of the map is above: no weight is above 1. For the end of colours.
    float most() const override { return most_; }

    void weights_into(const Cells& cells, float* out) const override;
    std::pair<std::int64_t, std::int64_t> seen(std::int64_t q_begin, std::int64_t q_end) const override;
    std::vector<std::pair<std::int64_t, std::int64_t>> allowed(std::int64_t query) const override;

private:
    std::vector<std::shared_ptr<const HeadMap>> maps_;
    std::vector<float> products_;
    float most_ = 0;
};

}  // namespace headscope::maps
