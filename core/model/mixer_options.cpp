// SPDX-License-Identifier: GPL-3.0-or-later
// "mixers" of a native configuration, by what each mixer's type says of its options.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/model/config_reader.h"

namespace headscope::model {
namespace {

using mixers::MixerOption;
using mixers::OptionValue;

std::string text_of(double number) {
    return nlohmann::json(number).dump();
}

std::string choice_of(const ConfigReader& reader, const MixerOption& option, const std::string& standard) {
    std::string text = reader.text(option.key, standard);
    const auto& choices = option.choices;
    if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
        std::string list;
        for (const std::string& choice : choices) list += (list.empty() ? "" : " or ") + choice;
        reader.refuse(option.key, list);
    }
    return text;
}

double number_of(const ConfigReader& reader, const MixerOption& option, double standard) {
    const double number = reader.number(option.key, standard);
    if (number < option.least || number > option.most) {
        reader.refuse(option.key, "a number from " + text_of(option.least) + " to " + text_of(option.most));
    }
    return number;
}

std::int64_t whole_of(const ConfigReader& reader, const MixerOption& option, std::int64_t standard) {
    const std::int64_t number = reader.count(option.key, standard);
    const auto value = static_cast<double>(number);
    if (value < option.least || value > option.most) {
        reader.refuse(option.key, "a whole number from " + text_of(option.least) + " to " + text_of(option.most));
    }
    return number;
}

OptionValue value_of(const ConfigReader& reader, const MixerOption& option) {
    if (const auto* text = std::get_if<std::string>(&option.standard)) return choice_of(reader, option, *text);
    if (const auto* flag = std::get_if<bool>(&option.standard)) return reader.boolean(option.key, *flag);
    if (const auto* number = std::get_if<double>(&option.standard)) return number_of(reader, option, *number);
    return whole_of(reader, option, std::get<std::int64_t>(option.standard));
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
        for (const MixerOption& option : type->options) keys.emplace_back(option.key);
        own->expect_keys(keys);  // a mixer without options may say so
        for (const MixerOption& option : type->options) options.set(*type, option.key, value_of(*own, option));
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
        for (const MixerOption& option : type->options)
            std::visit([&](const auto& value) { own[option.key] = value; }, options.value(*type, option));
    }
    return json;
}

}  // namespace headscope::model
