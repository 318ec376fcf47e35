// SPDX-License-Identifier: GPL-3.0-or-later
// O and statistics of weights from the rows' constants.
#include "kernels/gpu/device/attend_launch.h"

namespace headscope::gpu {

void launch_weigh(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    if (instance.mma) return launch_weigh_mma(launcher, args, blocks, instance);
    launch_weigh_of<Attend>(launcher, args, blocks, instance);
}

}  // namespace headscope::gpu
