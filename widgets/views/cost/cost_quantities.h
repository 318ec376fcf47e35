// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <array>
#include <cmath>

#include "core/cost/cost_table.h"
#include "widgets/training/facts.h"

namespace headscope::widgets {

inline constexpr int kCostColumns = 2;  ///< name and time; each quantity has two more

/// A quantity that the view of costs shows for each mixer.
struct CostQuantity {
    const char* name;
    const char* title;
    bool bytes;
    cost::Formula cost::MixerCost::*formula;
    double cost::CostNumbers::*paper;
    double cost::MeasuredMixer::*measured;
};
inline constexpr std::array<CostQuantity, 4> kCostQuantities{{
    {"prefill", QT_TRANSLATE_NOOP("CostView", "Prefill FLOPs"), false, &cost::MixerCost::prefill,
     &cost::CostNumbers::prefill, &cost::MeasuredMixer::prefill_flops},
    {"decode", QT_TRANSLATE_NOOP("CostView", "Decode FLOPs"), false, &cost::MixerCost::decode,
     &cost::CostNumbers::decode, &cost::MeasuredMixer::decode_flops},
    {"activation", QT_TRANSLATE_NOOP("CostView", "Activation bytes"), true, &cost::MixerCost::activation,
     &cost::CostNumbers::activation, &cost::MeasuredMixer::activation_bytes},
    {"cache", QT_TRANSLATE_NOOP("CostView", "Cache bytes"), true, &cost::MixerCost::cache, &cost::CostNumbers::cache,
     &cost::MeasuredMixer::cache_bytes},
}};

inline QString cost_words(double value, bool bytes) {
    if (!std::isfinite(value)) return QStringLiteral("–");
    if (value == 0) return QStringLiteral("0");
    if (!bytes) return count_words(value);
    return count_words(value) + (value < 1000 ? QStringLiteral(" B") : QStringLiteral("B"));
}

}  // namespace headscope::widgets
