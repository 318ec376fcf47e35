// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace headscope::app {

/// Samples the stack of a thread of this process by a signal, for reports of stalls. One thread takes samples of one
/// other at a time. Takes none under sanitizers and without the C library's backtrace().
class StackSamples {
public:
    /// `thread` is of this process. Uses SIGRTMIN+8.
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
