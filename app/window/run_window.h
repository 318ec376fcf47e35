// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace headscope::app {

/// True when the arguments ask for the window: no sub-command, nothing but paths and the window's own options.
bool wants_window(int argc, char** argv, const std::vector<std::string>& commands);

/// Opens the window and returns the exit status when it is closed: 0; 1 without a display; 2 for wrong usage. No
/// exception leaves it.
int run_window(int argc, char** argv);

}  // namespace headscope::app
