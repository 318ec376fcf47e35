// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/normaliser.h"

#include <vector>

namespace headscope::kernels {

std::optional<Normaliser> find_normaliser(std::string_view name) {
    for (const NormaliserTraits& traits : kNormalisers) {
        if (name == traits.name) return traits.normaliser;
    }
    return std::nullopt;
}

std::string normaliser_list(bool training) {
    std::vector<const char*> names;
    for (const NormaliserTraits& traits : kNormalisers) {
        if (!training || traits.trains()) names.push_back(traits.name);
    }
    std::string list;
    for (std::size_t n = 0; n < names.size(); ++n) {
        list += n == 0 ? "" : n + 1 == names.size() ? " or " : ", ";
        list += names[n];
    }
    return list;
}

}  // namespace headscope::kernels
