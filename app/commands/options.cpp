// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/options.h"

#include <cstdint>
#include <functional>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "core/base/device_choice.h"
#include "core/base/option.h"

namespace headscope::app {

template <class T>
CLI::Option* add_option(CLI::App& command, const std::string& name, T& value, const std::string& help) {
    return command.add_option(name, value, help);
}

CLI::Option* add_flag(CLI::App& command, const std::string& name, bool& value, const std::string& help) {
    return command.add_flag(name, value, help);
}

namespace {

/// CLI11's text of help with the wording of core/base/option.h.
CLI::Validator worded(CLI::Validator validator, const std::function<void(const std::string&)>& check) {
    return validator.operation([check](std::string& text) {
        try {
            check(text);
        } catch (const Error& error) {
            return error.expected() + "; " + error.found();
        }
        return std::string();
    });
}

}  // namespace

template <class T>
CLI::Validator in_range(T lowest, T highest) {
    using Value = std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;
    const Option option("", Value(lowest), {}, static_cast<double>(lowest), static_cast<double>(highest));
    return worded(CLI::Range(lowest, highest), [option](const std::string& text) { read_number(option, text, ""); });
}

CLI::Validator one_of(const std::vector<std::string>& values) {
    return worded(CLI::IsMember(values), [values](const std::string& text) { check_choice(values, text, ""); });
}

CLI::Validator of_form(const Option& option) {
    return worded(CLI::Validator(expected_text(option)),
                  [option](const std::string& text) { checked_value(option, text, ""); });
}

CLI::Option* add_device_option(CLI::App& command, std::string& device) {
    const Option& option = device_option();
    return add_option(command, "--" + option.name, device, option.help)->check(of_form(option));
}

template CLI::Option* add_option(CLI::App&, const std::string&, std::string&, const std::string&);
template CLI::Option* add_option(CLI::App&, const std::string&, int&, const std::string&);
template CLI::Option* add_option(CLI::App&, const std::string&, std::int64_t&, const std::string&);
template CLI::Option* add_option(CLI::App&, const std::string&, std::uint64_t&, const std::string&);
template CLI::Option* add_option(CLI::App&, const std::string&, double&, const std::string&);
template CLI::Option* add_option(CLI::App&, const std::string&, std::vector<double>&, const std::string&);
template CLI::Option* add_option(CLI::App&, const std::string&, std::vector<std::string>&, const std::string&);
template CLI::Option* add_option(CLI::App&, const std::string&, std::vector<std::int64_t>&, const std::string&);
template CLI::Option* add_option(CLI::App&, const std::string&, std::vector<int>&, const std::string&);

template CLI::Validator in_range(int, int);
template CLI::Validator in_range(std::int64_t, std::int64_t);
template CLI::Validator in_range(double, double);

}  // namespace headscope::app
