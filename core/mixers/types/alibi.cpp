// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/types/alibi.h"

#include <cmath>

namespace headscope::mixers {

std::vector<float> alibi_slopes(std::int64_t heads, double scale) {
    std::int64_t power = 1;
    while (2 * power <= heads) power *= 2;
    std::vector<float> slopes;
    for (std::int64_t head = 0; head < heads; ++head) {
        const double step = head < power ? static_cast<double>(head + 1) / static_cast<double>(power)
                                         : static_cast<double>(2 * (head - power) + 1) / static_cast<double>(2 * power);
        slopes.push_back(static_cast<float>(std::exp2(-8.0 * step) * scale));
    }
    return slopes;
}

}  // namespace headscope::mixers
