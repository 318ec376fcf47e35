// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "core/model/load/config_reader.h"
#include "core/model/load/recipe.h"

namespace headscope::test {

/// A config.json as its family reads it.
inline model::ModelConfig read(const nlohmann::json& config) {
    const model::ConfigReader reader(config, "config.json");
    return model::find_family(reader).read(reader);
}

/// One of that type that says `key` alone.
inline nlohmann::json with(const std::string& type, const std::string& key, const nlohmann::json& value) {
    return {{"model_type", type}, {key, value}};
}

}  // namespace headscope::test
