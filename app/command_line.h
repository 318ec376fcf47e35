// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace headscope::app {

/// Parses the arguments, runs one sub-command and returns the exit status: 0 done, 1 could not
/// be done (one line on standard error), 2 wrong usage, 130 stopped by Ctrl-C. No exception leaves it.
int run_command_line(int argc, char** argv);

}  // namespace headscope::app
