// SPDX-License-Identifier: GPL-3.0-or-later
#include <memory>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/model/load/build.h"
#include "core/model/model.h"
#include "core/model/towers/stack.h"

namespace headscope::model {

Inspection inspect(const checkpoint::Checkpoint& checkpoint) {
    try {
        const Stack model(make_blueprint(checkpoint), checkpoint, std::nullopt, nullptr, nullptr);
        return {model.config(),     model.sites(),    model.report(),
                model.parameters(), model.has_head(), model.has_classes()};
    } catch (...) {
        throw current_error("model");
    }
}

Inspection inspect_config(const std::string& config_json) {
    try {
        const Stack model(make_blueprint(parse_json(config_json, "config.json"), nullptr), TensorPlan(),
                          [](TensorPlan&) {});
        return {model.config(),     model.sites(),    model.report(),
                model.parameters(), model.has_head(), model.has_classes()};
    } catch (...) {
        throw current_error("model");
    }
}

std::shared_ptr<Model> Model::build(const checkpoint::Checkpoint& checkpoint, checkpoint::LoadAs precision,
                                    Progress* progress, const Cancellation* cancellation) {
    try {
        return std::make_shared<Stack>(make_blueprint(checkpoint), checkpoint, precision, progress, cancellation);
    } catch (...) {
        throw current_error("model");
    }
}

}  // namespace headscope::model
