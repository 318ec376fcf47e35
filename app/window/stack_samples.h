// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace headscope::app {

/// Where a thread of this process was, asked by a signal that it answers itself: for the report of a stall. One thread
/// takes samples of one other at a time. Under sanitizers and where the C library cannot look at its stack: nothing.
class StackSamples {
public:
    /// What is sampled is this process's thread of that number. Takes SIGRTMIN+8 for itself.
    explicit StackSamples(pid_t thread);

    void clear();
    /// Waits until it has answered, 20 ms at most.
    void take();
    /// A line each of the samples since clear(), innermost function first. Those of a program whose names are not
    /// exported are "program+0x1234", for addr2line.
    std::vector<std::string> lines() const;

private:
    pid_t thread_;
};

}  // namespace headscope::app
