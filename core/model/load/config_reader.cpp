// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/config_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text/text.h"

namespace headscope::model {
namespace {
constexpr std::int64_t kLargestSize = (std::int64_t{1} << 31) - 1;  // a Site's numbers are int32
}

ConfigReader::ConfigReader(const nlohmann::json& object, std::string where)
    : object_(&object), where_(std::move(where)) {}

const nlohmann::json* ConfigReader::find(const std::string& key) const {
    const auto it = object_->find(key);
    return it == object_->end() || it->is_null() ? nullptr : &*it;
}

std::string ConfigReader::where(const std::string& key) const {
    return where_ + ": " + key;
}

std::string ConfigReader::found(const std::string& key) const {
    const auto* value = find(key);
    return value ? "found " + escaped(value->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), 60)
                 : "found none";
}

void ConfigReader::refuse(const std::string& key, const std::string& expected) const {
    throw Error(ErrorCode::mismatch, where(key), "expected " + expected, found(key));
}

void ConfigReader::unsupported(const std::string& key, const std::string& expected) const {
    throw Error(ErrorCode::unsupported, where(key), "expected " + expected, found(key));
}

bool ConfigReader::has(const std::string& key) const {
    return find(key) != nullptr;
}

bool ConfigReader::is_null(const std::string& key) const {
    const auto it = object_->find(key);
    return it != object_->end() && it->is_null();
}

std::int64_t ConfigReader::count(const std::string& key, std::int64_t otherwise) const {
    const auto* value = find(key);
    if (!value) return otherwise;
    // Unsigned numbers beyond int64 read as negative ones here; both are refused.
    const std::int64_t size = value->is_number_integer() ? value->get<std::int64_t>() : -1;
    if (size < 0 || size > kLargestSize) refuse(key, "a whole number from 0 to 2^31 - 1");
    return size;
}

std::int64_t ConfigReader::size(const std::string& key, std::int64_t otherwise) const {
    const auto* value = find(key);
    if (value && !value->is_number_integer()) refuse(key, "a whole number from 1 to 2^31 - 1");
    const std::int64_t size = value ? value->get<std::int64_t>() : otherwise;
    if (size < 1 || size > kLargestSize) refuse(key, "a whole number from 1 to 2^31 - 1");
    return size;
}

std::int64_t ConfigReader::size(const std::string& key) const {
    if (!has(key)) refuse(key, "a whole number from 1 to 2^31 - 1");
    return size(key, 1);
}

std::optional<double> ConfigReader::optional_number(const std::string& key) const {
    const auto* value = find(key);
    if (!value) return std::nullopt;
    if (!value->is_number() || !std::isfinite(value->get<double>())) refuse(key, "a number");
    return value->get<double>();
}

double ConfigReader::number(const std::string& key, double otherwise) const {
    return optional_number(key).value_or(otherwise);
}

double ConfigReader::positive(const std::string& key, double otherwise) const {
    const double value = number(key, otherwise);
    if (value <= 0) refuse(key, "a number above 0");
    return value;
}

bool ConfigReader::boolean(const std::string& key, bool otherwise) const {
    const auto* value = find(key);
    if (!value) return otherwise;
    if (!value->is_boolean()) refuse(key, "true or false");
    return value->get<bool>();
}

std::string ConfigReader::text(const std::string& key, const std::string& otherwise) const {
    const auto* value = find(key);
    if (!value) return otherwise;
    if (!value->is_string()) refuse(key, "a string");
    return value->get<std::string>();
}

std::vector<double> ConfigReader::numbers(const std::string& key) const {
    const auto* value = find(key);
    std::vector<double> list;
    if (!value) return list;
    if (!value->is_array()) refuse(key, "a list of numbers");
    for (const auto& item : *value) {
        if (!item.is_number() || !std::isfinite(item.get<double>())) refuse(key, "a list of numbers");
        list.push_back(item.get<double>());
    }
    return list;
}

std::optional<std::pair<double, double>> ConfigReader::range(const std::string& key) const {
    const auto* value = find(key);
    if (!value) return std::nullopt;
    const auto end = [&](std::size_t index) {
        const nlohmann::json& item = value->at(index);
        const bool infinite = index == 1 && item == nlohmann::json{{"__float__", "Infinity"}};
        const double number = infinite           ? std::numeric_limits<double>::infinity()
                              : item.is_number() ? item.get<double>()
                                                 : std::nan("");
        if (std::isnan(number)) refuse(key, "two numbers, the second of which may be Infinity");
        return number;
    };
    if (!value->is_array() || value->size() != 2) refuse(key, "two numbers, the second of which may be Infinity");
    const std::pair<double, double> found{end(0), end(1)};
    if (found.first > found.second) refuse(key, "two numbers, the first of which is not above the second");
    return found;
}

std::vector<std::string> ConfigReader::texts(const std::string& key) const {
    const auto* value = find(key);
    std::vector<std::string> list;
    if (!value) return list;
    if (!value->is_array()) refuse(key, "a list of strings");
    for (const auto& item : *value) {
        if (!item.is_string()) refuse(key, "a list of strings");
        list.push_back(item.get<std::string>());
    }
    return list;
}

std::vector<bool> ConfigReader::booleans(const std::string& key) const {
    const auto* value = find(key);
    std::vector<bool> list;
    if (!value) return list;
    if (!value->is_array()) refuse(key, "a list of true and false");
    for (const auto& item : *value) {
        if (!item.is_boolean()) refuse(key, "a list of true and false");
        list.push_back(item.get<bool>());
    }
    return list;
}

std::optional<JsonView> ConfigReader::view(const std::string& key) const {
    const auto* value = find(key);
    return value ? std::optional(JsonView(*value, where_, key)) : std::nullopt;
}

bool ConfigReader::has_object(const std::string& key) const {
    const auto* value = find(key);
    return value && value->is_object();
}

bool ConfigReader::has_text(const std::string& key) const {
    const auto* value = find(key);
    return value && value->is_string();
}

bool ConfigReader::is_empty_object(const std::string& key) const {
    const auto* value = find(key);
    return value && value->is_object() && value->empty();
}

std::optional<ConfigReader> ConfigReader::object(const std::string& key) const {
    const auto* value = find(key);
    if (!value) return std::nullopt;
    if (!value->is_object()) refuse(key, "an object");
    return ConfigReader(*value, where(key));
}

std::vector<ConfigReader> ConfigReader::objects(const std::string& key) const {
    const auto* value = find(key);
    std::vector<ConfigReader> list;
    if (!value) return list;
    if (value->is_object()) return {ConfigReader(*value, where(key))};
    if (!value->is_array()) refuse(key, "an object or a list of objects");
    for (const auto& item : *value) {
        if (!item.is_object()) refuse(key, "an object or a list of objects");
        list.emplace_back(item, where(key) + "[" + std::to_string(list.size()) + "]");
    }
    return list;
}

void ConfigReader::expect_keys(const std::vector<std::string>& known) const {
    for (const auto& [key, value] : object_->items()) {
        if (std::find(known.begin(), known.end(), key) != known.end()) continue;
        throw Error(ErrorCode::mismatch, where_,
                    known.empty() ? "expected no options" : "expected only " + list_text(known),
                    "found " + escaped(key));
    }
}

Activation read_activation(const ConfigReader& reader, const std::string& key, const std::string& otherwise) {
    return activation_named(reader.text(key, otherwise), reader, key);
}

Activation activation_named(const std::string& name, const ConfigReader& reader, const std::string& key) {
    if (name == "gelu" || name == "gelu_python") return Activation::gelu;
    if (name == "gelu_new" || name == "gelu_fast" || name == "gelu_pytorch_tanh" || name == "gelu_python_tanh" ||
        name == "gelu_accurate") {
        return Activation::gelu_tanh;
    }
    if (name == "silu" || name == "swish") return Activation::silu;
    if (name == "quick_gelu") return Activation::gelu_quick;
    if (name == "relu") return Activation::relu;
    if (name == "relu2") return Activation::relu_squared;
    if (name == "tanh") return Activation::tanh;
    reader.unsupported(key,
                       "gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, quick_gelu, silu, swish, relu, relu2 or tanh");
}

}  // namespace headscope::model
