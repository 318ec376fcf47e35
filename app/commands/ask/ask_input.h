// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Values of options that tools of `headscope ask` share.

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/commands/ask/ask_tool.h"
#include "app/commands/options.h"
#include "core/ask/metric.h"
#include "core/ask/options/tool_options.h"
#include "core/ask/token_list.h"
#include "core/model/edits/editor.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::app {

using ask::parse_tokens;

ask::Metric metric_of(const AskOptions& options, const tokenizer::Tokenizer* tokenizer);
std::vector<model::Point> points_of(const std::string& option, const std::string& list);

/// Bytes of runs side by side whose scores or weights are edited, of a text of `tokens` tokens each.
double matrix_edit_bytes(const model::ModelConfig& config, std::int64_t tokens);

/// Index of a value among the choices of an option of core/ask/options, which CLI11 has checked.
std::size_t choice_of(const std::string& option, const std::string& value);

/// The default of the list, where it has one.
void take_standard(const ask::ToolOption& option, std::string& value);
void take_standard(const ask::ToolOption& option, std::int64_t& value);
void take_standard(const ask::ToolOption& option, double& value);
void take_standard(const ask::ToolOption& option, std::vector<std::string>& values);
void take_standard(const ask::ToolOption& option, std::vector<double>& values);
/// The checks of the list.
CLI::Option* checked(CLI::Option* made, const ask::ToolOption& option);

/// As add_option(), with help, default and checks of core/ask/options.
template <class T>
CLI::Option* add_tool_option(CLI::App& command, const std::string& name, T& value) {
    const ask::ToolOption& option = ask::tool_option(name);
    take_standard(option, value);
    return checked(add_option(command, name, value, ask::command_help(option)), option);
}
CLI::Option* add_tool_flag(CLI::App& command, const std::string& name, bool& value);
/// An option that may repeat, each time with one value.
void add_list(CLI::App& command, const std::string& name, std::vector<std::string>& values);

}  // namespace headscope::app
