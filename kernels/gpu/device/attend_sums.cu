// SPDX-License-Identifier: GPL-3.0-or-later
// Constants of rows without an online sweep, and the search for thresholds.
#include "kernels/gpu/device/attend_launch.h"

namespace headscope::gpu {

void launch_sums(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    if (instance.statistics && instance.adjusted)
        launcher.run<Attend<Pass::sums, 64, true, true>>(blocks, args);
    else if (instance.statistics)
        launcher.run<Attend<Pass::sums, 64, true, false>>(blocks, args);
    else if (instance.adjusted)
        launcher.run<Attend<Pass::sums, 64, false, true>>(blocks, args);
    else
        launcher.run<Attend<Pass::sums, 64, false, false>>(blocks, args);
}

void launch_search(Launcher& launcher, const SearchArgs& args, long long rows) {
    launcher.run<Search>(rows, args);
}

}  // namespace headscope::gpu
