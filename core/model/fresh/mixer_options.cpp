// SPDX-License-Identifier: GPL-3.0-or-later
// "mixers" of a native configuration, by what each mixer's type says of its options.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/model/load/config_reader.h"

namespace headscope::model {
namespace {

OptionValue value_of(const ConfigReader& reader, const Option& option) {
    const auto given = reader.view(option.name);
    if (!given) return option.standard;
    const nlohmann::json value =
        checked_value(option, given->value(), reader.where(option.name), {ErrorCode::mismatch, ErrorCode::mismatch});
    return std::visit([&](const auto& standard) { return OptionValue(value.get<std::decay_t<decltype(standard)>>()); },
                      option.standard);
}

}  // namespace

mixers::MixerOptions read_mixer_options(const ConfigReader& reader) {
    mixers::MixerOptions options;
    const auto all = reader.object("mixers");
    if (!all) return options;
    all->expect_keys(mixers::known_names());
    for (const mixers::MixerType* type : mixers::known_types()) {
        const auto own = all->object(type->name);
        if (!own) continue;
        std::vector<std::string> keys;
        for (const Option& option : type->options) keys.push_back(option.name);
        own->expect_keys(keys);  // a mixer without options may say so
        for (const Option& option : type->options) options.set(*type, option.name, value_of(*own, option));
    }
    return options;
}

nlohmann::json mixer_options_json(const mixers::MixerOptions& options, const std::vector<std::string>& mixers) {
    nlohmann::json json = nlohmann::json::object();
    for (const mixers::MixerType* type : mixers::known_types()) {
        const bool used = std::find(mixers.begin(), mixers.end(), type->name) != mixers.end();
        if (!used || type->options.empty()) continue;
        // Mixers that transformers has a class for stay unnamed without options.
        if (type->in_transformers && options.are_standard(*type)) continue;
        nlohmann::json& own = json[type->name];
        for (const Option& option : type->options) own[option.name] = json_of(options.value(*type, option));
    }
    return json;
}

}  // namespace headscope::model
