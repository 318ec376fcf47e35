// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace headscope::app {

class MainWindow;

/// What tests attach to the window that is shown; null in a program without tests (tests/rig), which has no options for
/// it.
struct RigHooks {
    void (*drive)(MainWindow* window) = nullptr;
    void (*monkey)(MainWindow* window, double seconds, std::uint64_t seed) = nullptr;
};
RigHooks& rig_hooks();

}  // namespace headscope::app
