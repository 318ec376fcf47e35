// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>

namespace headscope::app {

/// The folder resources/: $HEADSCOPE_RESOURCES, else beside the installed program (../share/headscope), else the one of
/// the checkout that the program was built in. Throws Error (io) when none of them exists.
std::filesystem::path resource_folder();

}  // namespace headscope::app
