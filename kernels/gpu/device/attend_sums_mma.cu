// SPDX-License-Identifier: GPL-3.0-or-later
// Constants of rows without an online sweep on tensor cores, the second pass there, and O and statistics of weights
// from the constants.
#include "kernels/gpu/device/attend_launch.h"

namespace headscope::gpu {

void launch_sums_mma(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    if constexpr (kCompilesMma) launch_sums_of<AttendMma>(launcher, args, blocks, instance);
}

void launch_weigh_mma(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    if constexpr (kCompilesMma) launch_weigh_of<AttendMma>(launcher, args, blocks, instance);
}

void launch_measure_mma(Launcher& launcher, const MeasureArgs& args, long long tiles, const Instance& instance) {
    if constexpr (kCompilesMma) {
        if (instance.adjusted)
            launcher.run<MeasureMma<true>>(tiles, args);
        else
            launcher.run<MeasureMma<false>>(tiles, args);
    }
}

}  // namespace headscope::gpu
