// SPDX-License-Identifier: GPL-3.0-or-later
// The first pass of softmax and elastic weights on tensor cores.
#include "kernels/gpu/device/attend_launch.h"

namespace headscope::gpu {

void launch_online_mma(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    if constexpr (kCompilesMma) launch_online_of<AttendMma>(launcher, args, blocks, instance);
}

}  // namespace headscope::gpu
