// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Options that tools of `headscope ask` read: one list for the command line and the window's dialog. Threads: any.

#include <span>
#include <string>
#include <vector>

#include "core/base/option.h"

namespace headscope::ask {

/// `name` without dashes: "how". `standard` is an empty text where an option has no default, or each tool its own.
struct ToolOption : Option {
    std::vector<std::string> tools;  ///< that read it
    bool folder = false;             ///< the path is a folder's
    bool written = false;            ///< the path is an output
};

/// In the order of the dialog.
std::span<const ToolOption> tool_options();
/// By name, with or without dashes. Throws internal for an unknown one.
const ToolOption& tool_option(const std::string& name);
/// Names of what every tool reads, as CLI11 has them: "--output"; "model" for a positional one.
const std::vector<std::string>& common_options();
/// Names of the other options that a tool reads, with dashes.
std::vector<std::string> options_of_tool(const std::string& tool);
bool reads_option(const std::string& tool, const ToolOption& option);

/// The help, behind the tools where these are few: "lens, generate: likeliest tokens that are kept".
std::string command_help(const ToolOption& option);
/// The default as it is typed; empty: none.
std::string standard_text(const ToolOption& option);

}  // namespace headscope::ask
