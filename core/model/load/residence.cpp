// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/residence.h"

#include <cstddef>
#include <iterator>

namespace headscope::model {
namespace {

constexpr std::string_view kNames[] = {"float32", "file", "stream"};  ///< in the order of kResidences

}  // namespace

std::string_view name(Residence residence) {
    return kNames[static_cast<std::size_t>(residence)];
}

std::vector<std::string> residence_choices() {
    std::vector<std::string> choices{"auto"};
    choices.insert(choices.end(), std::begin(kNames), std::end(kNames));
    return choices;
}

std::optional<Residence> residence(std::string_view asked) {
    for (const Residence one : kResidences)
        if (name(one) == asked) return one;
    return std::nullopt;
}

}  // namespace headscope::model
