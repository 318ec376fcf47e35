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
};

void launch_online(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance);
void launch_weigh(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance);
void launch_sums(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance);
void launch_search(Launcher& launcher, const SearchArgs& args, long long rows);
void launch_measure(Launcher& launcher, const MeasureArgs& args, long long tiles, bool adjusted);

template <Pass kPass, bool kStatistics>
void launch_pass(Launcher& launcher, const AttendArgs& args, long long blocks, const Instance& instance) {
    if (instance.wide && instance.adjusted)
        launcher.run<Attend<kPass, 128, kStatistics, true>>(blocks, args);
    else if (instance.wide)
        launcher.run<Attend<kPass, 128, kStatistics, false>>(blocks, args);
    else if (instance.adjusted)
        launcher.run<Attend<kPass, 64, kStatistics, true>>(blocks, args);
    else
        launcher.run<Attend<kPass, 64, kStatistics, false>>(blocks, args);
}

}  // namespace headscope::gpu
