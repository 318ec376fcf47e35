// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

namespace headscope::app {

/// How fast this machine is at the moment: the time that fixed work takes beside what it took at best so far. Virtual
/// machines slow down for seconds, and a stall of the window is then none of its doing. One thread at a time.
class Pace {
public:
    Pace();

    struct Slower {
        double arithmetic = 1;  ///< times of the best
        double memory = 1;      ///< the same, of reads here and there in 16 MB
    };
    /// Works for some two milliseconds of the calling thread.
    Slower measure();

private:
    double arithmetic();
    double reads();

    std::vector<std::uint32_t> places_;
    std::uint32_t kept_ = 1;  ///< what was computed, so that it is
    double best_arithmetic_ = 0, best_reads_ = 0;
};

/// Seconds that others on the same computer took from this virtual machine's processors so far: the most of any of
/// them.
double stolen_time();

}  // namespace headscope::app
