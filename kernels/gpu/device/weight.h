// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Weights of scores from the constants of their row (kernels/attention_backward.h, SoftmaxRows). The normalizer is the
// same for all threads.

#include "kernels/gpu/device/tile.h"
#include "kernels/normaliser.h"

namespace headscope::gpu {

using kernels::Normaliser;

inline constexpr float kFirstOrder = static_cast<float>(kLn2);                ///< s = ln 2 t
inline constexpr float kSecondOrder = static_cast<float>(0.5 * kLn2 * kLn2);  ///< s^2 / 2

HS_DEVICE bool is_diagonal(Normaliser n) {
    return n == Normaliser::taylor_diagonal || n == Normaliser::taylor_diagonal_per_order;
}
HS_DEVICE bool is_per_order(Normaliser n) {
    return n == Normaliser::taylor_per_order || n == Normaliser::taylor_diagonal_per_order;
}
HS_DEVICE bool is_taylor_rule(Normaliser n) {
    return n == Normaliser::taylor || is_diagonal(n) || is_per_order(n);
}

/// Constants of a row. `extra`: the offset of the elastic normalizer, or one over the row's keys (Taylor by order).
struct RowConstant {
    float shift, factor, extra;
};

HS_DEVICE float power(const Context& c, float u) {
    return c.exp2(u < -127.0f ? -127.0f : u);
}

/// The weight of an allowed pair; `second`: its second order, of diagonal normalizers alone.
HS_DEVICE float weigh(const Context& c, Normaliser normaliser, float t, float second, const RowConstant& row) {
    switch (normaliser) {
        case Normaliser::softmax:
            return power(c, t - row.shift) * row.factor;
        case Normaliser::elastic: {
            const float x = power(c, t - row.shift) * row.factor + row.extra;
            return x < 0.0f ? 0.0f : x;
        }
        case Normaliser::sparsemax: {
            const float excess = t - row.shift - row.factor;
            return excess < 0.0f ? 0.0f : static_cast<float>(kLn2) * excess;
        }
        case Normaliser::entmax: {
            const float excess = t - row.shift - row.factor;
            const float root = excess < 0.0f ? 0.0f : static_cast<float>(0.5 * kLn2) * excess;
            return root * root;
        }
        case Normaliser::sigmoid:
            return 1.0f / (1.0f + power(c, -t));
        default:
            break;
    }
    if (!is_diagonal(normaliser)) second = t * kSecondOrder * t;
    const float s = t * kFirstOrder;
    if (is_per_order(normaliser)) return second * row.factor + (s * row.shift + row.extra);
    if (is_diagonal(normaliser)) return second * row.factor + (s * row.factor + row.factor);
    return (1.0f + (s + second)) * row.factor;
}

}  // namespace headscope::gpu
