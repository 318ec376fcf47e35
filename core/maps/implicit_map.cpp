// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/maps/implicit_map.h"

#include <algorithm>

namespace headscope::maps {

void ImplicitMap::weights_into(const Cells& cells, float* out) const {
    const std::vector<float> values = read_(cells);
    std::copy(values.begin(), values.end(), out);
}

std::pair<std::int64_t, std::int64_t> ImplicitMap::seen(std::int64_t, std::int64_t q_end) const {
    return {0, causal_ ? q_end : length_};
}

std::vector<std::pair<std::int64_t, std::int64_t>> ImplicitMap::allowed(std::int64_t query) const {
    return {{0, causal_ ? query + 1 : length_}};
}

}  // namespace headscope::maps
