// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// CLI11's member templates, instantiated once (options.cpp): each costs a command's file seconds. A type that is
// missing there fails to link.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace headscope {
struct Option;
}

namespace headscope::app {

/// As CLI::App::add_option. Types: string, int, 32 and 64 bit integers, double; vectors and optionals of some.
template <class T>
CLI::Option* add_option(CLI::App& command, const std::string& name, T& value, const std::string& help);

/// As CLI::App::add_flag.
CLI::Option* add_flag(CLI::App& command, const std::string& name, bool& value, const std::string& help);

/// As CLI::Range and CLI::IsMember, with the errors of core/base/option.h.
template <class T>
CLI::Validator in_range(T lowest, T highest);
CLI::Validator one_of(const std::vector<std::string>& values);
/// The form of a text option.
CLI::Validator of_form(const Option& option);

/// Adds --device, by its row in core/base/device_choice.h.
CLI::Option* add_device_option(CLI::App& command, std::string& device);

}  // namespace headscope::app
