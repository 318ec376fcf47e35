// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Launches of the attention kernels. Each pass is a source of its own: a compiler takes seconds for each instance.

#include "kernels/gpu/device/attend.h"
#include "kernels/gpu/device/entries.h"
#include "kernels/gpu/device/measure.h"
#include "kernels/gpu/device/search.h"

namespace headscope::gpu {

/// Which instance of a pass runs.
struct Instance {
    bool wide;        ///< 128 columns of O, else 64; not with statistics of weights, which fill the registers
    bool statistics;  ///< measures scores and weights
    bool adjusted;    ///< the rule has more than ranges of keys
    bool mma;         ///< products on tensor cores
};

void launch_online(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance);
void launch_weigh(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance);
void launch_sums(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance);
void launch_search(Launcher& launcher, const SearchArgs& args, long long rows);
void launch_measure(Launcher& launcher, const MeasureArgs& args, long long tiles, const Instance& instance);

// The same with Instance::mma.
void launch_online_mma(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance);
void launch_weigh_mma(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance);
void launch_sums_mma(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance);
void launch_measure_mma(Launcher& launcher, const MeasureArgs& args, long long tiles, const Instance& instance);

/// Attend or AttendMma, of 64 columns of O.
template <template <Pass, int, bool, bool> class Kernel, Pass kPass, bool kStatistics>
void launch_narrow(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    if (instance.adjusted)
        launcher.run<Kernel<kPass, 64, kStatistics, true>>(blocks, args);
    else
        launcher.run<Kernel<kPass, 64, kStatistics, false>>(blocks, args);
}

template <template <Pass, int, bool, bool> class Kernel, Pass kPass, bool kStatistics>
void launch_pass(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    if (!instance.wide)
        launch_narrow<Kernel, kPass, kStatistics>(launcher, args, blocks, instance);
    else if (instance.adjusted)
        launcher.run<Kernel<kPass, 128, kStatistics, true>>(blocks, args);
    else
        launcher.run<Kernel<kPass, 128, kStatistics, false>>(blocks, args);
}

template <template <Pass, int, bool, bool> class Kernel>
void launch_online_of(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    if (instance.statistics)
        launch_pass<Kernel, Pass::online, true>(launcher, args, blocks, instance);
    else
        launch_pass<Kernel, Pass::online, false>(launcher, args, blocks, instance);
}

template <template <Pass, int, bool, bool> class Kernel>
void launch_weigh_of(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    if (instance.statistics)
        launch_narrow<Kernel, Pass::weigh, true>(launcher, args, blocks, instance);
    else
        launch_pass<Kernel, Pass::weigh, false>(launcher, args, blocks, instance);
}

template <template <Pass, int, bool, bool> class Kernel>
void launch_sums_of(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    if (instance.statistics)
        launch_narrow<Kernel, Pass::sums, true>(launcher, args, blocks, instance);
    else
        launch_narrow<Kernel, Pass::sums, false>(launcher, args, blocks, instance);
}

}  // namespace headscope::gpu
