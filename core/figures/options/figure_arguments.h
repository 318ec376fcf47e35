// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The command that makes a figure: what the export page runs, shows and copies. It and `headscope export` know the same
// list of options (option_list.h), so that both make the same bytes.

#include <string>
#include <vector>

#include "core/figures/options/option_list.h"

namespace headscope::figures {

/// {"export", FILES..., "--figure", RECIPE, options..., "-o", OUTPUT}: what follows the program's name. Options that
/// the recipe lacks, and those with their default, are left out.
std::vector<std::string> figure_arguments(const FigureRequest& request, const std::vector<std::string>& files,
                                          const std::string& output);

/// The same as one line for a POSIX shell: "headscope export ..." with quotes where they are needed.
std::string shell_command(const std::vector<std::string>& arguments, const std::string& program = "headscope");

}  // namespace headscope::figures
