// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/swap.h"

#include <utility>

#include <ATen/TensorOperators.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/mixers/mixer.h"
#include "core/model/native_config.h"

namespace headscope::model {
namespace {

void replace(std::vector<std::string>& mixers, const std::map<int, std::string>& swap, const std::string& where) {
    for (const auto& [layer, mixer] : swap) {
        if (layer < 0 || layer >= static_cast<int>(mixers.size())) {
            throw Error(ErrorCode::limit, where, "expected a layer from 0 to " + std::to_string(mixers.size() - 1),
                        "found " + std::to_string(layer));
        }
        mixers[static_cast<std::size_t>(layer)] = mixer;
    }
}

}  // namespace

Swapped swap_mixers(const checkpoint::Checkpoint& file, const std::map<int, std::string>& swap) {
    if (swap.empty()) return {make_blueprint(file), TensorPlan(file)};
    Blueprint own = make_blueprint(file);
    replace(own.config.mixers, swap, escaped(file.display_name()));
    Swapped swapped{make_blueprint(native_json(own.config), &file), TensorPlan()};
    const TensorNames& names = swapped.blueprint.names;
    // A layer's own tensors are the mixer's but for its output projection and what lies outside self_attn.
    std::vector<std::string> stems{names.prefix + names.guide};
    for (const auto& [layer, mixer] : swap) {
        std::string stem = names.prefix + names.layer;
        stems.push_back(stem.replace(stem.find("{}"), 2, std::to_string(layer)) + "self_attn.");
    }
    swapped.plan = TensorPlan(file, [stems = std::move(stems)](const std::string& tensor) {
        for (const std::string& stem : stems) {
            if (tensor.compare(0, stem.size(), stem) == 0) return true;
        }
        return false;
    });
    return swapped;
}

}  // namespace headscope::model
