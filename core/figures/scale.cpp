// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <limits>

#include "core/figures/figure_data.h"

namespace headscope::figures {

double scaled(ScaleKind scale, double value, double linear_range) {
    switch (scale) {
        case ScaleKind::square_root:
            return std::copysign(std::sqrt(std::abs(value)), value);
        case ScaleKind::logarithmic:
            return value > 0 ? std::log10(value)
                             : (std::isnan(value) ? value : -std::numeric_limits<double>::infinity());
        case ScaleKind::symmetric_log: {
            const double ratio = std::abs(value) / linear_range;
            return std::copysign(ratio > 1 ? 1 + std::log(ratio) : ratio, value);
        }
        case ScaleKind::linear:
            break;
    }
    return value;
}

}  // namespace headscope::figures
