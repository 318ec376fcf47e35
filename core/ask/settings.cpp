// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/settings.h"

#include <nlohmann/json.hpp>

#include "core/model/load/model_device.h"

namespace headscope::ask {

void GenerateChoice::store(nlohmann::json& settings) const {
    settings["temperature"] = temperature;
    settings["replace"] = replaced;
    settings["record"] = record;
}

void TextsHash::add(const store::SequenceTokens& text) {
    const auto length = static_cast<std::uint64_t>(text.ids.size());
    hash_.update(&length, sizeof length);
    hash_.update(text.ids.data(), text.ids.size() * sizeof text.ids[0]);
    if (text.target) add(*text.target);
}

nlohmann::json ask_settings(const AskOptions& options, const std::string& texts_sha256) {
    nlohmann::json settings = analysis::to_json(options.job);
    model::store_device(settings, options.job.dtype);
    settings["tool"] = options.tool;
    settings["interventions"] = options.interventions;
    settings["metric"] = options.metric;
    settings["answer"] = options.answer;
    settings["against"] = options.against;
    settings["position"] = options.position;
    settings["reference_tokens"] = options.reference_tokens;
    settings["heads"] = options.heads;
    settings["window"] = options.window;
    settings["generate"] = options.generate;
    settings["seed"] = options.seed;
    settings["top"] = options.top;
    settings["models"] = options.models;
    settings["texts_sha256"] = texts_sha256;
    return settings;
}

std::string stored_settings(const nlohmann::json& settings) {
    return settings.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);  // paths are bytes
}

}  // namespace headscope::ask
