// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/residence.h"

#include <utility>

namespace headscope::model {
namespace {

constexpr std::pair<std::string_view, Residence> kResidences[] = {
    {"float32", Residence::float32}, {"file", Residence::file}, {"stream", Residence::stream}};

}  // namespace

std::string_view name(Residence residence) {
    for (const auto& [name, one] : kResidences)
        if (one == residence) return name;
    return "";
}

std::vector<std::string> residence_choices() {
    std::vector<std::string> choices{"auto"};
    for (const auto& [name, one] : kResidences) choices.emplace_back(name);
    return choices;
}

std::optional<Residence> residence(std::string_view asked) {
    for (const auto& [name, one] : kResidences)
        if (name == asked) return one;
    return std::nullopt;
}

}  // namespace headscope::model
