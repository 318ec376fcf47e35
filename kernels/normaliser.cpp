// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/normaliser.h"

namespace headscope::kernels {

const char* normaliser_name(Normaliser normaliser) {
    for (const auto& [name, value] : kNormalisers) {
        if (value == normaliser) return name;
    }
    return "";
}

std::optional<Normaliser> find_normaliser(std::string_view name) {
    for (const auto& [known, value] : kNormalisers) {
        if (name == known) return value;
    }
    return std::nullopt;
}

std::string normaliser_list() {
    std::string list;
    for (const auto& [name, value] : kNormalisers) {
        list += list.empty() ? "" : value == kNormalisers.back().second ? " or " : ", ";
        list += name;
    }
    return list;
}

}  // namespace headscope::kernels
