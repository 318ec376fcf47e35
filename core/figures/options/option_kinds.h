// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// How values of figure options are read and written: figure_options.cpp's words.

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/figures/options/figure_options.h"
#include "core/figures/table.h"

namespace headscope::figures {

using OptionValues = std::vector<std::string>;

[[noreturn]] inline void refuse_value(const std::string& option, const std::string& expected, const std::string& text) {
    throw Error(ErrorCode::usage, "--" + option, "expected " + expected, "found " + escaped(text));
}

/// The whole text as a number, or nothing.
template <class Number>
std::optional<Number> whole_number(const std::string& text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

inline std::int64_t read_count(const std::string& option, const std::string& text, std::int64_t least = 0,
                               std::int64_t most = -1) {
    const auto value = whole_number<std::int64_t>(text);
    const std::string range = most < 0 ? "a whole number from " + std::to_string(least)
                                       : std::to_string(least) + " to " + std::to_string(most);
    if (!value || *value < least || (most >= 0 && *value > most)) refuse_value(option, range, text);
    return *value;
}

inline double read_real(const std::string& option, const std::string& text, double least, double most) {
    const auto value = whole_number<double>(text);
    if (!value || !(*value >= least && *value <= most))
        refuse_value(option, csv_number(least) + " to " + csv_number(most), text);
    return *value;
}

/// A count of FigureOptions that may be absent.
inline FigureOption optional_count(std::string name, std::string help, std::vector<std::string> recipes,
                                   std::optional<std::int64_t> FigureOptions::*member, std::int64_t least = 0) {
    FigureOption option{std::move(name), "N", std::move(help), {}, std::move(recipes), false, {}, {}};
    option.set = [member, least, name = option.name](FigureRequest& request, const OptionValues& values) {
        request.options.*member = read_count(name, values.back(), least);
    };
    option.get = [member](const FigureRequest& request) -> OptionValues {
        const auto& value = request.options.*member;
        return value ? OptionValues{std::to_string(*value)} : OptionValues{};
    };
    return option;
}

/// A measure of FigureStyle.
inline FigureOption real_style(std::string name, std::string unit, std::string help, double least, double most,
                               double FigureStyle::*member) {
    FigureOption option{std::move(name), std::move(unit), std::move(help), {}, {}, false, {}, {}};
    option.set = [=, name = option.name](FigureRequest& request, const OptionValues& values) {
        request.style.*member = read_real(name, values.back(), least, most);
    };
    option.get = [member](const FigureRequest& request) -> OptionValues {
        const double value = request.style.*member;
        return value == FigureStyle().*member ? OptionValues{} : OptionValues{csv_number(value)};
    };
    return option;
}

template <class Value>
using NamedValues = std::vector<std::pair<std::string, Value>>;

/// One of some named values; `access` gives the place of the value in a request. `older` names are accepted and not
/// listed.
template <class Value, class Access>
FigureOption choice(std::string name, std::string help, std::vector<std::string> recipes, NamedValues<Value> names,
                    Access access, NamedValues<Value> older = {}) {
    FigureOption option{std::move(name), "NAME", std::move(help), {}, std::move(recipes), false, {}, {}};
    std::string list;
    for (const auto& one : names) {
        option.choices.push_back(one.first);
        list += (list.empty() ? "" : ", ") + one.first;
    }
    option.set = [=, name = option.name](FigureRequest& request, const OptionValues& values) {
        for (const auto* some : {&names, &older}) {
            for (const auto& [word, value] : *some) {
                if (word == values.back()) {
                    access(request) = value;
                    return;
                }
            }
        }
        refuse_value(name, "one of " + list, values.back());
    };
    option.get = [=](const FigureRequest& request) -> OptionValues {
        FigureRequest here = request, standard;
        if (access(here) == access(standard)) return {};
        for (const auto& [word, value] : names) {
            if (access(here) == value) return {word};
        }
        return {};
    };
    return option;
}

/// Recipes that draw analyses.
inline std::vector<std::string> of_analyses() {
    std::vector<std::string> names;
    for (const auto& recipe : recipes())
        if (recipe.of_analyses) names.push_back(recipe.name);
    return names;
}

inline std::vector<std::string> with(std::vector<std::string> names, const std::string& more) {
    names.push_back(more);
    return names;
}

/// A text of the options; empty where it was not given.
inline FigureOption word_option(const std::string& name, const std::string& help, std::vector<std::string> recipes,
                                std::string FigureOptions::*member) {
    FigureOption option{name, "NAME", help, {}, std::move(recipes), false, {}, {}};
    option.set = [member](FigureRequest& request, const OptionValues& values) {
        request.options.*member = values.back();
    };
    option.get = [member](const FigureRequest& request) -> OptionValues {
        const auto& value = request.options.*member;
        return value.empty() ? OptionValues{} : OptionValues{value};
    };
    return option;
}

inline FigureOption flag_option(const std::string& name, const std::string& help, std::vector<std::string> recipes,
                                bool FigureOptions::*member) {
    FigureOption option{name, "", help, {}, std::move(recipes), false, {}, {}};
    option.set = [member](FigureRequest& request, const OptionValues&) { request.options.*member = true; };
    option.get = [member](const FigureRequest& request) {
        return request.options.*member ? OptionValues{""} : OptionValues{};
    };
    return option;
}

inline constexpr double kMostReal = 1e15;  ///< tokens, steps and seconds are fewer

inline FigureOption real_option(const std::string& name, const std::string& help, std::vector<std::string> recipes,
                                std::optional<double> FigureOptions::*member) {
    FigureOption option{name, "X", help, {}, std::move(recipes), false, {}, {}};
    option.set = [member, name](FigureRequest& request, const OptionValues& values) {
        request.options.*member = read_real(name, values.back(), 0, kMostReal);
    };
    option.get = [member](const FigureRequest& request) -> OptionValues {
        const auto& value = request.options.*member;
        return value ? OptionValues{csv_number(*value)} : OptionValues{};
    };
    return option;
}

// Parts of the list of options, in its order.
void add_record_options(std::vector<FigureOption>& all);  ///< of runs, evaluations, models, tensors and hashes
void add_style_options(std::vector<FigureOption>& all);   ///< of the page

}  // namespace headscope::figures
