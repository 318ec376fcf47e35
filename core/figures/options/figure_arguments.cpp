// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/options/figure_arguments.h"

#include <algorithm>
#include <string_view>

namespace headscope::figures {
namespace {

/// A path that cannot be taken for an option.
std::string as_path(const std::string& path) {
    return path.starts_with('-') ? "./" + path : path;
}

std::string quoted(const std::string& text) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
    if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'')
            out += "'\\''";
        else
            out += c;
    }
    return out + "'";
}

}  // namespace

std::vector<std::string> figure_arguments(const FigureRequest& request, const std::vector<std::string>& files,
                                          const std::string& output) {
    std::vector<std::string> arguments{"export"};
    for (const auto& file : files) arguments.push_back(as_path(file));
    arguments.insert(arguments.end(), {"--figure", request.recipe});
    for (const auto& option : figure_options()) {
        if (!has_option(request.recipe, option)) continue;
        for (const auto& value : option.get(request)) {
            const std::string name = "--" + option.name;
            if (option.value.empty()) {
                arguments.push_back(name);
            } else if (value.starts_with('-')) {
                arguments.push_back(name + "=" + value);
            } else {
                arguments.insert(arguments.end(), {name, value});
            }
        }
    }
    arguments.insert(arguments.end(), {"-o", as_path(output)});
    return arguments;
}

std::string shell_command(const std::vector<std::string>& arguments, const std::string& program) {
    std::string line = quoted(program);
    for (const auto& argument : arguments) line += " " + quoted(argument);
    return line;
}

}  // namespace headscope::figures
