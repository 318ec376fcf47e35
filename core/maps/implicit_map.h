// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/maps/value_map.h"

namespace headscope::maps {

/// One head's implicit matrix: the signed A with which a layer's outputs are o_i = sum over j of A_ij v_j, of a causal
/// one over j <= i (kernels/recurrent.h), as an analysis recorded it. Pooled: the mean over all pairs under a pixel,
/// later keys of a causal one as 0, and the coefficient of greatest magnitude.
class ImplicitMap final : public ValueMap {
public:
    /// `read`: coefficients of any cells, row-major; called by many threads at once. `most`: no magnitude is above.
    /// `bytes`: what it holds.
    ImplicitMap(std::int64_t length, bool causal, float most, std::int64_t bytes,
                std::function<std::vector<float>(const Cells& cells)> read)
        : length_(length), causal_(causal), most_(most), bytes_(bytes), read_(std::move(read)) {}

    std::int64_t queries() const override { return length_; }
    std::int64_t keys() const override { return length_; }
    std::int64_t bytes() const override { return bytes_; }
    float most() const override { return most_; }

    void weights_into(const Cells& cells, float* out) const override;
    std::pair<std::int64_t, std::int64_t> seen(std::int64_t q_begin, std::int64_t q_end) const override;
    std::vector<std::pair<std::int64_t, std::int64_t>> allowed(std::int64_t query) const override;

private:
    std::int64_t length_;
    bool causal_;
    float most_;
    std::int64_t bytes_;
    std::function<std::vector<float>(const Cells& cells)> read_;
};

}  // namespace headscope::maps
