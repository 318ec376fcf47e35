// SPDX-License-Identifier: GPL-3.0-or-later
// O from the rows' constants.
#include "kernels/gpu/device/attend_launch.h"

namespace headscope::gpu {

void launch_weigh(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    launch_pass<Pass::weigh, false>(launcher, args, blocks, instance);
}

}  // namespace headscope::gpu
