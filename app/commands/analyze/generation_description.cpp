// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/analyze/generation_description.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/model/load/generation_settings.h"

namespace headscope::app {

nlohmann::json describe_generation(const checkpoint::Checkpoint& checkpoint, nlohmann::json& notes) {
    const model::GenerationKeys keys = model::generation_keys_of(checkpoint);
    nlohmann::json described = {{"file", keys.file},
                                {"obeyed", nlohmann::json::object()},
                                {"without_effect", nlohmann::json::object()},
                                {"refused", nlohmann::json::object()}};
    for (const auto& [key, value] : model::active_keys(keys)) {
        const std::string name(key->name), note(key->note);
        if (key->use == model::KeyUse::obeyed) described["obeyed"][name] = value;
        if (key->use == model::KeyUse::without_effect) described["without_effect"][name] = note;
        if (key->use != model::KeyUse::refused && key->use != model::KeyUse::refused_when_sampling) continue;
        described["refused"][name] = value;
        const char* const answers = key->use == model::KeyUse::refused ? "answers" : "sampled answers";
        notes.push_back(std::string("generate refuses ") + answers + ": [" + keys.file + ": " + name + "] expected " +
                        note);
    }
    try {
        model::read_generation_settings(keys);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::unsupported) throw;
    }
    return described;
}

std::string generation_text(const nlohmann::json& generation) {
    std::string text;
    for (const auto& [key, value] : generation.at("obeyed").items())
        text += key + ' ' + escaped(value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), 60) + ", ";
    return text.empty() ? "none" : text + "of " + generation.at("file").get<std::string>();
}

}  // namespace headscope::app
