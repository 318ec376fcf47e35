// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace headscope::app {

/// The window of this program takes --drive (driver.h) and --monkey (monkey.h).
void install_rig();

}  // namespace headscope::app
