// SPDX-License-Identifier: GPL-3.0-or-later
#include <memory>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/model/load/build.h"
#include "core/model/load/model_device.h"
#include "core/model/load/presets.h"
#include "core/model/model.h"
#include "core/model/towers/stack.h"

namespace headscope::model {

Inspection inspect(const checkpoint::Checkpoint& checkpoint) {
    try {
        return Stack(make_blueprint(checkpoint), checkpoint, std::nullopt, Residence::float32, nullptr, nullptr)
            .inspection();
    } catch (...) {
        throw current_error("model");
    }
}

Inspection inspect_config(const std::string& config_json) {
    try {
        return Stack(make_blueprint(parse_json(config_json, "config.json"), nullptr), TensorPlan(), [](TensorPlan&) {})
            .inspection();
    } catch (...) {
        throw current_error("model");
    }
}

std::shared_ptr<Model> Model::build(const checkpoint::Checkpoint& checkpoint, checkpoint::LoadAs precision,
                                    Progress* progress, const Cancellation* cancellation, Residence residence) {
    try {
        auto model = std::make_shared<Stack>(make_blueprint(checkpoint), checkpoint, precision, residence, progress,
                                             cancellation);
        if (!model_device().is_cpu()) model->to(model_device());
        return model;
    } catch (...) {
        throw current_error("model");
    }
}

}  // namespace headscope::model
