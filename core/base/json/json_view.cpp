// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/json/json.h"

namespace headscope {
namespace {

using Json = nlohmann::json;

std::string brief(const Json& value) {
    switch (value.type()) {
        case Json::value_t::object:
            return "found an object";
        case Json::value_t::array:
            return "found an array of " + std::to_string(value.size());
        case Json::value_t::string:
            return "found \"" + escaped(value.get_ref<const std::string&>(), 80) + "\"";
        default:
            return "found " + escaped(value.dump(), 80);
    }
}

std::string range_text(IntegerRange range) {
    constexpr IntegerRange all;
    if (range.lowest == all.lowest && range.highest == all.highest) return "a whole number of 64 bits";
    if (range.highest == all.highest) return "a whole number of at least " + std::to_string(range.lowest);
    if (range.lowest == all.lowest) return "a whole number of at most " + std::to_string(range.highest);
    return "a whole number from " + std::to_string(range.lowest) + " to " + std::to_string(range.highest);
}

std::string number_text(double value) {
    return Json(value).dump();
}

}  // namespace

std::string JsonView::where() const {
    return path_.empty() ? file_ : file_ + ": " + path_;
}

bool JsonView::is_null() const noexcept {
    return value_->is_null();
}
bool JsonView::is_object() const noexcept {
    return value_->is_object();
}
bool JsonView::is_array() const noexcept {
    return value_->is_array();
}
bool JsonView::is_string() const noexcept {
    return value_->is_string();
}
std::size_t JsonView::size() const noexcept {
    return value_->size();
}

bool JsonView::has(std::string_view key) const {
    object();
    const auto entry = value_->find(key);
    return entry != value_->end() && !entry->is_null();
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
    if (!has(key)) return std::nullopt;
    const std::string name = escaped(key);
    return JsonView(*value_->find(key), file_, path_.empty() ? name : path_ + "." + name);
}

JsonView JsonView::at(std::string_view key) const {
    auto found = find(key);
    if (found) return *found;
    const std::string name = escaped(key);
    throw Error(ErrorCode::format, file_ + ": " + (path_.empty() ? name : path_ + "." + name), "expected this key",
                value_->contains(key) ? "found null" : "found none");
}

JsonView JsonView::at(std::size_t index) const {
    array();
    if (index >= value_->size()) {
        throw Error(ErrorCode::format, where(), "expected an array of more than " + std::to_string(index),
                    brief(*value_));
    }
    return {(*value_)[index], file_, path_ + "[" + std::to_string(index) + "]"};
}

std::vector<std::string> JsonView::keys() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : object().value_->get_ref<const Json::object_t&>()) names.push_back(name);
    return names;
}

void JsonView::refuse(ErrorCode code, const std::string& expected) const {
    throw Error(code, where(), expected, brief(*value_));
}

std::int64_t JsonView::integer(IntegerRange range) const {
    std::int64_t number = 0;
    if (value_->is_number_unsigned()) {
        const auto value = value_->get<std::uint64_t>();
        if (value > static_cast<std::uint64_t>(range.highest) || range.highest < 0) {
            refuse(ErrorCode::limit, "expected " + range_text(range));
        }
        number = static_cast<std::int64_t>(value);
    } else if (value_->is_number_integer()) {
        number = value_->get<std::int64_t>();
    } else if (value_->is_number_float()) {
        const auto value = value_->get<double>();
        if (std::abs(value) > 9007199254740992.0 || value != std::floor(value)) {
            refuse(ErrorCode::format, "expected " + range_text(range));
        }
        number = static_cast<std::int64_t>(value);
    } else {
        refuse(ErrorCode::format, "expected " + range_text(range));
    }
    if (number < range.lowest || number > range.highest) refuse(ErrorCode::limit, "expected " + range_text(range));
    return number;
}

double JsonView::number(double lowest, double highest) const {
    if (!value_->is_number()) refuse(ErrorCode::format, "expected a number");
    const auto number = value_->get<double>();
    if (!(number >= lowest && number <= highest)) {
        std::string range = "expected a number";
        if (std::isfinite(lowest)) range += " of at least " + number_text(lowest);
        if (std::isfinite(highest))
            range += (std::isfinite(lowest) ? " and" : " of") + (" at most " + number_text(highest));
        refuse(ErrorCode::limit, range);
    }
    return number;
}

bool JsonView::boolean() const {
    if (!value_->is_boolean()) refuse(ErrorCode::format, "expected true or false");
    return value_->get<bool>();
}

std::string JsonView::string() const {
    if (!value_->is_string()) refuse(ErrorCode::format, "expected a string");
    return value_->get<std::string>();
}

const JsonView& JsonView::object() const {
    if (!value_->is_object()) refuse(ErrorCode::format, "expected an object");
    return *this;
}

const JsonView& JsonView::array() const {
    if (!value_->is_array()) refuse(ErrorCode::format, "expected an array");
    return *this;
}

std::vector<std::int64_t> JsonView::integers(IntegerRange range) const {
    std::vector<std::int64_t> values;
    for (const JsonView& item : items()) values.push_back(item.integer(range));
    return values;
}

std::vector<double> JsonView::numbers() const {
    std::vector<double> values;
    for (const JsonView& item : items()) values.push_back(item.number());
    return values;
}

std::vector<std::string> JsonView::strings() const {
    std::vector<std::string> values;
    for (const JsonView& item : items()) values.push_back(item.string());
    return values;
}

std::vector<JsonView> JsonView::items() const {
    std::vector<JsonView> views;
    for (std::size_t i = 0; i < array().size(); ++i) views.push_back(at(i));
    return views;
}

std::int64_t JsonView::integer_or(std::string_view key, std::int64_t fallback, IntegerRange range) const {
    const auto entry = find(key);
    return entry ? entry->integer(range) : fallback;
}

double JsonView::number_or(std::string_view key, double fallback, double lowest, double highest) const {
    const auto entry = find(key);
    return entry ? entry->number(lowest, highest) : fallback;
}

bool JsonView::boolean_or(std::string_view key, bool fallback) const {
    const auto entry = find(key);
    return entry ? entry->boolean() : fallback;
}

std::string JsonView::string_or(std::string_view key, const std::string& fallback) const {
    const auto entry = find(key);
    return entry ? entry->string() : fallback;
}

std::vector<std::string> JsonView::strings_or_none(std::string_view key) const {
    const auto entry = find(key);
    return entry ? entry->strings() : std::vector<std::string>();
}

std::int64_t require_integer(const Json& object, std::string_view key, IntegerRange range, const std::string& file) {
    return JsonView(object, file).at(key).integer(range);
}

double require_number(const Json& object, std::string_view key, const std::string& file) {
    return JsonView(object, file).at(key).number();
}

bool require_boolean(const Json& object, std::string_view key, const std::string& file) {
    return JsonView(object, file).at(key).boolean();
}

std::string require_string(const Json& object, std::string_view key, const std::string& file) {
    return JsonView(object, file).at(key).string();
}

}  // namespace headscope
