// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/colour_lookup.h"

#include <cmath>

namespace headscope::widgets {

ColourLookup::ColourLookup(const figures::ColourScale& scale, const ColourTable& table, QRgb none, QRgb zero)
    : ColourLookup() {
    for (std::uint32_t upper = 0; upper < colours_.size(); ++upper) {
        const double value = double{std::bit_cast<float>(upper << 16)};
        // Most floats lie beyond the ends, where no logarithm is needed.
        double at = value <= scale.minimum ? 0.0 : 1.0;
        if (std::isnan(value) || (value > scale.minimum && value < scale.maximum)) at = fraction(scale, value);
        colours_[upper] = colour_of(table, at, none);
    }
    if (scale.zero_apart) colours_[0] = colours_[std::bit_cast<std::uint32_t>(-0.0F) >> 16] = zero;
}

}  // namespace headscope::widgets
