// SPDX-License-Identifier: GPL-3.0-or-later
// Constants of rows without an online sweep, and the search for thresholds.
#include "kernels/gpu/device/attend_launch.h"

namespace headscope::gpu {

void launch_sums(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    if (instance.mma) return launch_sums_mma(launcher, args, blocks, instance);
    launch_sums_of<Attend>(launcher, args, blocks, instance);
}

void launch_search(Launcher& launcher, const SearchArgs& args, long long rows) {
    launcher.run<Search>(rows, args);
}

}  // namespace headscope::gpu
