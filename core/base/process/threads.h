// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace headscope {

// Threads that the system may refuse: a limit of processes (ulimit -u, a control group's pids.max), or no memory.

/// std::thread's own failure is no Error, and ends a program that does not know of it. Throws Error io.
/// `gives_way` false: whatever set_new_threads_nice() says, it has the priority of the thread that calls.
std::thread start_thread(std::function<void()> work, bool gives_way = true);

/// Threads and processes (Spawned) that are started from now on give way to the thread that calls: by `niceness` as
/// nice(1) counts, and so do those that they start themselves. For a window, whose workers compute on all processors.
/// Linux: threads have priorities of their own.
void set_new_threads_nice(int niceness);
/// Their niceness, as nice(1) counts; negative: that of the starting thread.
int niceness_of_new_threads();

/// Lowers the priority of a process that has one thread so far, as nice(1) counts; never raises it. One that leads a
/// session of its own is a group to Linux's scheduler (see autogroup in sched(7)): it shares processors with other
/// sessions half and half, however nice its threads are, so that the group is made as nice. `process` 0: this one.
void make_nice(pid_t process, int niceness);

/// Appends up to `count` threads that all do `work`, which must not throw: as many as the system gives. Throws Error io
/// where it gives none.
void start_threads(std::vector<std::thread>& threads, std::int64_t count, const std::function<void()>& work);

}  // namespace headscope
