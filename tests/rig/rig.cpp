// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/rig/rig.h"

#include "app/window/main_window.h"
#include "app/window/rig_hooks.h"
#include "tests/rig/driver.h"
#include "tests/rig/monkey.h"

namespace headscope::app {

void install_rig() {
    rig_hooks().drive = [](MainWindow* window) { new Driver(window); };
    rig_hooks().monkey = [](MainWindow* window, double seconds, std::uint64_t seed) {
        new Monkey(window, seconds, seed);
    };
}

}  // namespace headscope::app
