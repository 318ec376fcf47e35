// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/option.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/text/nearest_word.h"
#include "core/base/text/text.h"

namespace headscope {
namespace {

using nlohmann::json;

constexpr std::size_t kShownChoices = 40;
constexpr std::size_t kShownBytes = 80;  ///< of a refused value

OptionKind kind_of(const OptionValue& standard, const std::vector<std::string>& choices) {
    if (std::holds_alternative<bool>(standard)) return OptionKind::flag;
    if (std::holds_alternative<std::int64_t>(standard)) return OptionKind::whole;
    if (std::holds_alternative<double>(standard)) return OptionKind::number;
    return choices.empty() ? OptionKind::text : OptionKind::choice;
}

std::string range_text(const Option& option, std::string text) {
    const bool low = std::isfinite(option.lowest), high = std::isfinite(option.highest);
    if (low) text += (option.above ? " above " : " from ") + plain_number(option.lowest);
    if (high) text += (low ? (option.above ? " and up to " : " to ") : " up to ") + plain_number(option.highest);
    if (!option.choices.empty()) text += ", or " + list_text(option.choices, kShownChoices);
    return text;
}

bool in_range(const Option& option, double number) {
    return number <= option.highest && (option.above ? number > option.lowest : number >= option.lowest);
}

std::string one_of(const std::vector<std::string>& choices) {
    return "one of " + list_text(choices, kShownChoices);
}

std::string with_nearest(const std::vector<std::string>& choices, const std::string& word) {
    const std::string near = nearest_word(word, choices);
    return one_of(choices) + (near.empty() ? "" : " (" + near + "?)");
}

std::string found_text(const json& value) {
    if (value.is_number_float()) return "found " + plain_number(value.get<double>());
    return "found " + escaped(value.dump(-1, ' ', false, json::error_handler_t::replace), kShownBytes);
}

class Checker {
public:
    Checker(const Option& option, const std::string& place, OptionErrors errors)
        : option_(option), place_(place), errors_(errors), expected_(expected_text(option)) {}

    json check(const json& value) const {
        switch (option_.kind) {
            case OptionKind::flag:
                if (!value.is_boolean()) refuse(value);
                return value;
            case OptionKind::whole:
                return whole(value);
            case OptionKind::number:
                return number(value);
            case OptionKind::text:
            case OptionKind::path:
                return text(value);
            case OptionKind::choice:
                return choice(value);
            case OptionKind::texts:
            case OptionKind::paths:
                return list(value, &Checker::text);
            case OptionKind::choices:
                return list(value, &Checker::choice);
            case OptionKind::pair:
                if (!value.is_array() || value.size() != 2) refuse(value);
                return json::array({number(value[0]), number(value[1])});
            case OptionKind::share_or_paths:
                return value.is_number() ? number(value) : list(value, &Checker::text);
            case OptionKind::table:
                if (!value.is_object()) refuse(value);
                return value;
        }
        return value;
    }

private:
    json whole(const json& value) const {
        if (!value.is_number() || (value.is_number_float() && std::floor(value.get<double>()) != value.get<double>()))
            refuse(value);
        expect_in_range(value);
        return value.is_number_float() ? json(static_cast<std::int64_t>(value.get<double>())) : value;
    }

    json number(const json& value) const {
        if (!value.is_number()) refuse(value);
        expect_in_range(value);
        return value.get<double>();
    }

    void expect_in_range(const json& value) const {
        if (in_range(option_, value.get<double>())) return;
        throw Error(errors_.range, place_, "expected " + expected_, found_text(value));
    }

    json text(const json& value) const {
        if (!value.is_string()) refuse(value);
        const auto& text = value.get_ref<const std::string&>();
        if (text.find('\0') != std::string::npos)
            throw Error(errors_.kind, place_, "expected " + expected_, "found a NUL character in it");
        // Jobs are stored as TOML and JSON, which are UTF-8.
        if (find_invalid_utf8(text) != std::string_view::npos)
            throw Error(errors_.kind, place_, "expected " + expected_ + " in UTF-8", "found " + escaped(text));
        if (option_.accepts != nullptr && !option_.accepts(text)) refuse(value);
        return value;
    }

    json choice(const json& value) const {
        if (!value.is_string()) refuse(value);
        const auto& word = value.get_ref<const std::string&>();
        if (std::find(option_.choices.begin(), option_.choices.end(), word) == option_.choices.end())
            throw Error(errors_.kind, place_, "expected " + with_nearest(option_.choices, word), found_text(value));
        return value;
    }

    json list(const json& value, json (Checker::*item)(const json&) const) const {
        json items = json::array();
        if (!value.is_array()) {
            items.push_back((this->*item)(value));
            return items;
        }
        for (const json& entry : value) items.push_back((this->*item)(entry));
        if (items.empty()) throw Error(errors_.kind, place_, "expected at least one entry", found_text(value));
        return items;
    }

    [[noreturn]] void refuse(const json& value) const {
        throw Error(errors_.kind, place_, "expected " + expected_, found_text(value));
    }

    const Option& option_;
    const std::string& place_;
    OptionErrors errors_;
    std::string expected_;
};

template <class Number>
bool reads(const std::string& text, Number& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Option::Option(std::string name_, OptionValue standard_, std::vector<std::string> choices_, double lowest_,
               double highest_, std::string help_)
    : name(std::move(name_)),
      kind(kind_of(standard_, choices_)),
      standard(std::move(standard_)),
      choices(std::move(choices_)),
      lowest(lowest_),
      highest(highest_),
      help(std::move(help_)) {}

std::string expected_text(const Option& option) {
    switch (option.kind) {
        case OptionKind::flag:
            return "true or false";
        case OptionKind::whole:
            return range_text(option, "a whole number");
        case OptionKind::number:
            return range_text(option, "a number");
        case OptionKind::text:
            return option.form.empty() ? "a text" : option.form;
        case OptionKind::path:
            return "a path as a text";
        case OptionKind::texts:
            return "a list of texts";
        case OptionKind::paths:
            return "a list of paths";
        case OptionKind::choice:
        case OptionKind::choices:
            return one_of(option.choices);
        case OptionKind::pair:
            return range_text(option, "a list of two numbers");
        case OptionKind::share_or_paths:
            return range_text(option, "a share") + ", or a list of paths";
        case OptionKind::table:
            return "a table { ... }";
    }
    return {};
}

std::string plain_number(double number) {
    constexpr double most_digits = 1e9;
    if (number == std::floor(number) && std::abs(number) < most_digits)
        return std::to_string(static_cast<std::int64_t>(number));
    std::array<char, 64> buffer{};
    const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
    return {buffer.data(), result.ptr};
}

json checked_value(const Option& option, const json& value, const std::string& place, OptionErrors errors) {
    return Checker(option, place, errors).check(value);
}

void check_number(const Option& option, double number, const std::string& place) {
    checked_value(option, number, place, {ErrorCode::usage, ErrorCode::usage});
}

double read_number(const Option& option, const std::string& text, const std::string& place) {
    std::int64_t whole = 0;
    double number = 0;
    const bool read = option.kind == OptionKind::whole ? reads(text, whole) : reads(text, number);
    if (option.kind == OptionKind::whole) number = static_cast<double>(whole);
    if (!read || !in_range(option, number))
        throw Error(ErrorCode::usage, place, "expected " + expected_text(option), "found " + escaped(text));
    return number;
}

Error choice_error(const std::vector<std::string>& choices, const std::string& text, const std::string& place) {
    return {ErrorCode::usage, place, "expected " + with_nearest(choices, text), "found " + escaped(text)};
}

void check_choice(const std::vector<std::string>& choices, const std::string& text, const std::string& place) {
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) throw choice_error(choices, text, place);
}

json json_of(const OptionValue& value) {
    return std::visit([](const auto& one) { return json(one); }, value);
}

double number_of(const OptionValue& value) {
    const auto* whole = std::get_if<std::int64_t>(&value);
    return whole != nullptr ? static_cast<double>(*whole) : std::get<double>(value);
}

}  // namespace headscope
