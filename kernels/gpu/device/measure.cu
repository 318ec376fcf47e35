// SPDX-License-Identifier: GPL-3.0-or-later
// The second pass.
#include "kernels/gpu/device/attend_launch.h"

namespace headscope::gpu {

void launch_measure(Launcher& launcher, const MeasureArgs& args, long long tiles, const Instance& instance) {
    if (instance.mma) return launch_measure_mma(launcher, args, tiles, instance);
    if (instance.adjusted)
        launcher.run<Measure<true>>(tiles, args);
    else
        launcher.run<Measure<false>>(tiles, args);
}

}  // namespace headscope::gpu
