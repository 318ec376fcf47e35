// SPDX-License-Identifier: GPL-3.0-or-later
// O and statistics of weights from the rows' constants.
#include "kernels/gpu/device/attend_launch.h"

namespace headscope::gpu {

void launch_weigh_measured(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    launch_pass<Pass::weigh, true>(launcher, args, blocks, instance);
}

}  // namespace headscope::gpu
