// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/figures/options/option_list.h"

namespace CLI {
class App;
}

namespace headscope::app {

/// Declares every option of figure_options() on `command`; parsing sets them in `request`, which must outlive it.
/// A value that cannot be is a CLI::ValidationError: wrong usage.
void add_figure_flags(CLI::App& command, figures::FigureRequest& request);

/// Throws UsageError when an option was given that the request's recipe does not have; unknown recipes pass.
void check_figure_flags(const CLI::App& command, const figures::FigureRequest& request);

}  // namespace headscope::app
