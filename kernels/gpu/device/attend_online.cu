// SPDX-License-Identifier: GPL-3.0-or-later
// The first pass of softmax and elastic weights.
#include "kernels/gpu/device/attend_launch.h"

namespace headscope::gpu {

void launch_online(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    if (instance.statistics)
        launch_pass<Pass::online, true>(launcher, args, blocks, instance);
    else
        launch_pass<Pass::online, false>(launcher, args, blocks, instance);
}

}  // namespace headscope::gpu
