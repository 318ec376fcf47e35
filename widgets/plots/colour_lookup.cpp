// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/colour_lookup.h"

#include <cmath>

namespace headscope::widgets {

ColourLookup::ColourLookup(const figures::ColourScale& scale, const ColourTable& table, QRgb none) : ColourLookup() {
    for (std::uint32_t upper = 0; upper < colours_.size(); ++upper) {
        const double value = double{std::bit_cast<float>(upper << 16)};
        // Most floats lie beyond the ends, where no logarithm is needed.
        double at = value <= scale.minimum ? 0.0 : 1.0;
        if (std::isnan(value) || (value > scale.minimum && value < scale.maximum)) at = fraction(scale, value);
        colours_[upper] = colour_of(table, at, none);
    }
}

}  // namespace headscope::widgets
