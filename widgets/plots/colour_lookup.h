// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "widgets/plots/colour_map.h"

namespace headscope::widgets {

/// colour_of(fraction()) as a table by the upper 16 bits of a float: a look-up a pixel instead of a logarithm. Values
/// that differ by less than a 128th of themselves share a colour, that of the one nearest to zero.
class ColourLookup {
public:
    ColourLookup() : colours_(std::size_t{1} << 16) {}
    ColourLookup(const figures::ColourScale& scale, const ColourTable& table, QRgb none, QRgb zero);

    QRgb operator()(float value) const { return colours_[std::bit_cast<std::uint32_t>(value) >> 16]; }

private:
    std::vector<QRgb> colours_;
};

}  // namespace headscope::widgets
