// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "core/figures/figure_options.h"

namespace headscope::figures {

inline FigureOptions options_for(std::int64_t layer, std::int64_t head) {
    FigureOptions options;
    options.layer = layer;
    options.head = head;
    return options;
}

}  // namespace headscope::figures
