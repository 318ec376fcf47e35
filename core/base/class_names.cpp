// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/class_names.h"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json/json.h"

namespace headscope {
namespace {

/// 12 of "12"; -1: not a number below `end`.
std::int64_t number_of(const std::string& text, std::int64_t end) {
    std::int64_t number = -1;
    const char* const last = text.data() + text.size();
    const bool whole = std::from_chars(text.data(), last, number).ptr == last && !text.empty();
    return whole && number < end ? number : -1;
}

std::vector<std::string> names_of(const nlohmann::json& config) {
    const auto labels = config.find("id2label");
    if (labels == config.end() || !labels->is_object()) return {};
    std::vector<std::string> names(labels->size());
    for (const auto& [key, label] : labels->items()) {
        const std::int64_t number = number_of(key, std::ssize(names));
        if (number < 0 || !label.is_string() || label == "LABEL_" + key) continue;
        names[static_cast<std::size_t>(number)] = label.get<std::string>();
    }
    const bool named = std::any_of(names.begin(), names.end(), [](const std::string& name) { return !name.empty(); });
    return named ? names : std::vector<std::string>{};
}

}  // namespace

std::vector<std::string> class_names(const std::string& config_json) {
    try {
        const nlohmann::json config = parse_json(config_json, "config.json");
        if (!config.is_object()) return {};
        const auto original = config.find("original");
        return names_of(original != config.end() && original->is_object() ? *original : config);
    } catch (const Error&) {
        return {};
    }
}

std::string class_name(std::span<const std::string> names, std::int64_t number) {
    const bool named = number >= 0 && number < std::ssize(names) && !names[static_cast<std::size_t>(number)].empty();
    return named ? names[static_cast<std::size_t>(number)] : std::to_string(number);
}

std::vector<std::string> all_class_names(const std::string& config_json, std::int64_t classes) {
    const std::vector<std::string> names = class_names(config_json);
    std::vector<std::string> all;
    for (std::int64_t number = 0; number < classes; ++number) all.push_back(class_name(names, number));
    return all;
}

}  // namespace headscope
