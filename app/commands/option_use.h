// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Which options each command reads, by its kinds: tasks of evaluate, papers of reproduce, ways to use cost. An option
// that is given and that none of the kinds at hand reads is refused. tests/app/test_option_use.cpp walks all options.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace headscope::app {

/// Options by the names that CLI11 gives them: "--output", of positional ones "model".
struct OptionKind {
    std::string name;
    std::vector<std::string> reads;
};

struct OptionUse {
    std::string command;
    std::vector<std::string> always;  ///< read whatever the kind
    std::vector<OptionKind> kinds;    ///< what they read besides; none: the command has no kinds
};

/// One a command.
const std::vector<OptionUse>& option_uses();
const OptionUse& option_use(const std::string& command);

/// The options of a parsed command that were given.
std::vector<std::string> given_options(const CLI::App& command);

/// Throws UsageError for a given option that none of `kinds` reads: its name, and the kinds that read it.
void check_options(const std::string& command, const std::vector<std::string>& given,
                   const std::vector<std::string>& kinds);

}  // namespace headscope::app
