// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace headscope::app {

class MainWindow;

/// Functions that tests (tests/rig) attach to the shown window. Null, and without options, in a program without tests.
struct RigHooks {
    void (*drive)(MainWindow* window) = nullptr;
    void (*monkey)(MainWindow* window, double seconds, std::uint64_t seed) = nullptr;
};
RigHooks& rig_hooks();

}  // namespace headscope::app
