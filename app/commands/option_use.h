// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The options that each command reads, by its kinds: tasks of evaluate, modes of cost. A given option that no requested
// kind reads is refused. tests/app/test_option_use.cpp walks all options.

#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace headscope::app {

/// A task or mode of a command. Options by CLI11's names: "--output"; "model" for positional ones.
struct CommandKind {
    std::string name;
    std::vector<std::string> reads;
};

struct OptionUse {
    std::string command;
    std::vector<std::string> always;  ///< read whatever the kind
    std::vector<CommandKind> kinds;   ///< what they read too; empty for commands without kinds
};

/// Names of both.
std::vector<std::string> joined_options(std::vector<std::string> first, const std::vector<std::string>& more);

/// One a command.
const std::vector<OptionUse>& option_uses();
const OptionUse& option_use(const std::string& command);

/// Options of all commands that name files or folders which are written, and which are read.
const std::vector<std::string>& output_options();
const std::vector<std::string>& input_options();

/// Values of the options of a command line.
using GivenValues = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// Throws Error(usage) for an output that is another output or an input, by whatever name. Looks at names alone: a
/// command compares its outputs with all files that it reads, too.
void check_outputs(const GivenValues& given);
/// Those of a parsed command, before it runs.
void check_outputs(const CLI::App& command);

/// The options of a parsed command that were given.
std::vector<std::string> given_options(const CLI::App& command);

/// Throws UsageError for a given option that none of `kinds` reads: its name, and the kinds that read it.
void check_options(const std::string& command, const std::vector<std::string>& given,
                   const std::vector<std::string>& kinds);

}  // namespace headscope::app
