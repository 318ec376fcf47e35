// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/options.h"

#include <cstdint>

namespace headscope::app {

template <class T>
CLI::Option* add_option(CLI::App& command, const std::string& name, T& value, const std::string& help) {
    return command.add_option(name, value, help);
}

CLI::Option* add_flag(CLI::App& command, const std::string& name, bool& value, const std::string& help) {
    return command.add_flag(name, value, help);
}

template <class T>
CLI::Validator in_range(T lowest, T highest) {
    return CLI::Range(lowest, highest);
}

CLI::Validator one_of(const std::vector<std::string>& values) {
    return CLI::IsMember(values);
}

template CLI::Option* add_option(CLI::App&, const std::string&, std::string&, const std::string&);
template CLI::Option* add_option(CLI::App&, const std::string&, int&, const std::string&);
template CLI::Option* add_option(CLI::App&, const std::string&, std::int64_t&, const std::string&);
template CLI::Option* add_option(CLI::App&, const std::string&, std::uint64_t&, const std::string&);
template CLI::Option* add_option(CLI::App&, const std::string&, double&, const std::string&);
template CLI::Option* add_option(CLI::App&, const std::string&, std::vector<std::string>&, const std::string&);
template CLI::Option* add_option(CLI::App&, const std::string&, std::vector<std::int64_t>&, const std::string&);
template CLI::Option* add_option(CLI::App&, const std::string&, std::vector<int>&, const std::string&);

template CLI::Validator in_range(int, int);
template CLI::Validator in_range(std::int64_t, std::int64_t);
template CLI::Validator in_range(double, double);

}  // namespace headscope::app
