// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Rotary positions (Su et al., arXiv 2104.09864) with every scaling that transformers 5.23 knows. Frequencies and
// angles are computed in float32 with the same operations as there: at position 100 000 the rounding of an angle is no
// detail.

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "core/model/config.h"

namespace headscope::model {

class TensorPlan;
struct TensorNames;

/// Cosines and sines of some consecutive positions, [L, rotated size / 2] each, in the type of what is rotated.
struct RotaryTable {
    at::Tensor cosine, sine;
};

class Rotary {
public:
    /// `head_size` is what a head has; RopeConfig::partial says how much of it, from the front, is rotated.
    Rotary(const RopeConfig& config, std::int64_t head_size, std::int64_t max_positions);

    /// The frequencies of a file that has them (TensorNames::rotary_frequencies), which may have been rounded.
    void declare(TensorPlan& plan, const TensorNames& names);

    /// Positions [first, first + count) of texts that end at first + count: the dynamic and longrope kinds choose their
    /// frequencies by it.
    RotaryTable table(std::int64_t first, std::int64_t count, at::ScalarType type) const;

    /// True if the angle of a position depends on the text's length. Caches then keep keys unrotated.
    bool depends_on_length() const;

    /// `heads` [B, L, N, size] -> new tensor of that shape. The first half of the rotated part pairs with the second,
    /// or each number with its neighbour (RopeConfig::interleaved).
    at::Tensor rotate(const at::Tensor& heads, const RotaryTable& table) const;

private:
    at::Tensor frequencies(std::int64_t text_length) const;

    RopeConfig config_;
    std::int64_t size_;
    std::int64_t max_positions_;
    at::Tensor given_;  ///< [rotated size / 2] or undefined
};

}  // namespace headscope::model
