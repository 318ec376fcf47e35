// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>

namespace headscope::kernels {

/// How many threads operators use from now on, 0 = all processors. Not to be called while an operator runs.
void set_threads(int threads);
int threads();

/// `wanted`, or as many threads, this one among them, as the system lets live at once where that is fewer: at a limit
/// of processes OpenMP would end the program.
int startable_threads(int wanted);

/// Which team runs the work: OpenMP's (shared with LibTorch: right on the one compute thread) or a pool of std::threads
/// (right on other threads, and the only one under TSan, since libgomp is not instrumented), or the calling
/// thread alone (right on tile workers, one per processor). A property of the calling thread.
enum class Team { openmp, pool, alone };
void set_team(Team team);

/// Runs body(index, worker) for every index in [0, count), dynamically scheduled in rising order, worker < threads().
/// Returns when all are done. The first exception is rethrown here; the remaining indices are skipped.
void parallel_for(std::int64_t count, const std::function<void(std::int64_t index, int worker)>& body);

}  // namespace headscope::kernels
