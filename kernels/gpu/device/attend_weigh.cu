// SPDX-License-Identifier: GPL-3.0-or-later
// O and statistics of weights from the rows' constants.
#include "kernels/gpu/device/attend_launch.h"

namespace headscope::gpu {

void launch_weigh(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    if (instance.statistics && instance.adjusted)
        launcher.run<Attend<Pass::weigh, 64, true, true>>(blocks, args);
    else if (instance.statistics)
        launcher.run<Attend<Pass::weigh, 64, true, false>>(blocks, args);
    else
        launch_pass<Pass::weigh, false>(launcher, args, blocks, instance);
}

}  // namespace headscope::gpu
