// SPDX-License-Identifier: GPL-3.0-or-later
// O and statistics of weights from the rows' constants on tensor cores.
#include "kernels/gpu/device/attend_launch.h"

namespace headscope::gpu {

void launch_weigh_mma(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    if constexpr (kCompilesMma) launch_weigh_of<AttendMma>(launcher, args, blocks, instance);
}

}  // namespace headscope::gpu
