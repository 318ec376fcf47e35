// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The display rule of the paper's radar plots (Deconstructing Attention, Fig. 1, 7, 8): entropy, concentration and head
// diversity min-max normalised over everything in the figure; sink and local focus absolute, local focus times two.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace headscope::figures {

inline constexpr std::size_t kRadarNormalised = 3, kRadarFocus = 4, kRadarSpokes = 8;
inline constexpr std::array<const char*, kRadarSpokes> kRadarSymbols{"H", "C", "HD", "LF0", "LF1", "LF2", "LF3", "S"};
inline constexpr std::array<const char*, kRadarSpokes> kRadarNames{"entropy",       "concentration", "head_diversity",
                                                                   "local_focus_0", "local_focus_1", "local_focus_2",
                                                                   "local_focus_3", "sink"};

inline constexpr const char* kRecurrentRadar =
    "Recurrent layers have H and C alone, of the magnitudes of their implicit matrices.";

/// Raw values of one layer, in that order.
using RadarValues = std::array<double, kRadarSpokes>;

struct RadarExtent {
    double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
};
using RadarExtents = std::array<RadarExtent, kRadarNormalised>;

inline void extend(RadarExtents& extents, const RadarValues& raw) {
    for (std::size_t k = 0; k < kRadarNormalised; ++k) {
        if (std::isnan(raw[k])) continue;
        extents[k].low = std::min(extents[k].low, raw[k]);
        extents[k].high = std::max(extents[k].high, raw[k]);
    }
}

/// Place of a value between the middle (0) and the rim (1).
inline double displayed(const RadarValues& raw, std::size_t spoke, const RadarExtents& extents) {
    if (spoke >= kRadarNormalised) return spoke + 1 < kRadarSpokes ? 2 * raw[spoke] : raw[spoke];
    const auto& [low, high] = extents[spoke];
    if (std::isnan(raw[spoke])) return std::numeric_limits<double>::quiet_NaN();
    return high > low ? (raw[spoke] - low) / (high - low) : 0.5;
}

/// How long a deviation of that spoke is drawn.
inline double displayed_deviation(double deviation, std::size_t spoke, const RadarExtents& extents) {
    if (spoke >= kRadarNormalised) return spoke + 1 < kRadarSpokes ? 2 * deviation : deviation;
    const auto& [low, high] = extents[spoke];
    return high > low ? deviation / (high - low) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace headscope::figures
