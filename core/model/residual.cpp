// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/residual.h"

#include <algorithm>
#include <array>

#include "core/checkpoint/not_finite.h"

namespace headscope::model {

bool is_residual(std::string_view name) {
    constexpr std::array<std::string_view, 5> names{"hidden", "embedding", "final_norm", "encoder_embedding",
                                                    "encoder_final_norm"};
    return std::find(names.begin(), names.end(), name) != names.end();
}

std::optional<NotFinitePlace> not_finite_place(std::string_view name, LayerIndex layer, const at::Tensor& value) {
    const std::int64_t first = checkpoint::first_not_finite(value);
    if (first < 0) return std::nullopt;
    NotFinitePlace place;
    place.name = '"' + std::string(name) + '"';
    if (layer.value >= 0) place.name += " of layer " + std::to_string(layer.value);
    place.row = first / (value.size(1) * value.size(2));
    place.token = first / value.size(2) % value.size(1);
    return place;
}

}  // namespace headscope::model
