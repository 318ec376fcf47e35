// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// How values of figure options are read and written: option_list.cpp's words.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/option.h"
#include "core/figures/make_figure.h"
#include "core/figures/options/option_list.h"
#include "core/figures/table.h"

namespace headscope::figures {

using OptionValues = std::vector<std::string>;

[[noreturn]] inline void refuse_value(const std::string& option, const std::string& expected, const std::string& text) {
    throw Error(ErrorCode::usage, "--" + option, "expected " + expected, "found " + escaped(text));
}

/// `words`: accepted too, named in errors.
inline std::int64_t read_count(const std::string& option, const std::string& text, std::int64_t least = 0,
                               double most = std::numeric_limits<double>::infinity(),
                               const std::vector<std::string>& words = {}) {
    const Option count(option, least, words, static_cast<double>(least), most);
    return static_cast<std::int64_t>(read_number(count, text, "--" + option));
}

inline double read_real(const std::string& option, const std::string& text, double least, double most) {
    return read_number(Option(option, least, {}, least, most), text, "--" + option);
}

/// A count of FigureOptions that may be absent.
inline FigureOption optional_count(std::string name, std::string help,
                                   std::optional<std::int64_t> FigureOptions::*member, std::int64_t least = 0) {
    FigureOption option{std::move(name), "N", std::move(help), {}, false, {}, {}};
    option.kind = OptionKind::whole;
    option.lowest = static_cast<double>(least);
    option.set = [member, count = Option(option)](FigureRequest& request, const OptionValues& values) {
        request.options.*member = static_cast<std::int64_t>(read_number(count, values.back(), "--" + count.name));
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
    FigureOption option{std::move(name), std::move(unit), std::move(help), {}, false, {}, {}};
    static_cast<Option&>(option) = Option(option.name, FigureStyle().*member, {}, least, most, option.help);
    option.set = [member, number = Option(option)](FigureRequest& request, const OptionValues& values) {
        request.style.*member = read_number(number, values.back(), "--" + number.name);
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
FigureOption choice(std::string name, std::string help, NamedValues<Value> names, Access access,
                    NamedValues<Value> older = {}) {
    FigureOption option{std::move(name), "NAME", std::move(help), {}, false, {}, {}};
    for (const auto& one : names) option.choices.push_back(one.first);
    option.kind = OptionKind::choice;
    option.set = [=, name = option.name, choices = option.choices](FigureRequest& request, const OptionValues& values) {
        for (const auto* some : {&names, &older}) {
            for (const auto& [word, value] : *some) {
                if (word == values.back()) {
                    access(request) = value;
                    return;
                }
            }
        }
        check_choice(choices, values.back(), "--" + name);
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

/// A text of the options; empty where it was not given.
inline FigureOption word_option(const std::string& name, const std::string& help, std::string FigureOptions::*member) {
    FigureOption option{name, "NAME", help, {}, false, {}, {}};
    option.set = [member](FigureRequest& request, const OptionValues& values) {
        request.options.*member = values.back();
    };
    option.get = [member](const FigureRequest& request) -> OptionValues {
        const auto& value = request.options.*member;
        return value.empty() ? OptionValues{} : OptionValues{value};
    };
    return option;
}

inline FigureOption flag_option(const std::string& name, const std::string& help, bool FigureOptions::*member) {
    FigureOption option{name, "", help, {}, false, {}, {}};
    option.set = [member](FigureRequest& request, const OptionValues&) { request.options.*member = true; };
    option.get = [member](const FigureRequest& request) {
        return request.options.*member ? OptionValues{""} : OptionValues{};
    };
    return option;
}

inline constexpr double kMostReal = 1e15;  ///< tokens, steps and seconds are fewer

inline FigureOption real_option(const std::string& name, const std::string& help,
                                std::optional<double> FigureOptions::*member) {
    FigureOption option{name, "X", help, {}, false, {}, {}};
    option.kind = OptionKind::number;
    option.lowest = 0;
    option.highest = kMostReal;
    option.set = [member, number = Option(option)](FigureRequest& request, const OptionValues& values) {
        request.options.*member = read_number(number, values.back(), "--" + number.name);
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
