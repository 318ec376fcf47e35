// SPDX-License-Identifier: GPL-3.0-or-later
// The first pass of softmax and elastic weights.
#include "kernels/gpu/device/attend_launch.h"

namespace headscope::gpu {

void launch_online(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    if (instance.mma) return launch_online_mma(launcher, args, blocks, instance);
    launch_online_of<Attend>(launcher, args, blocks, instance);
}

}  // namespace headscope::gpu
