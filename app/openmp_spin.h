// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace headscope::app {

/// True for sub-commands that use LibTorch's threads.
bool computes(const std::string& command);

/// Makes waiting OpenMP threads sleep after 200 rounds instead of 300 000. By default they spin for milliseconds, on
/// processors that other threads need: with two shared processors 5000 short sequences took 120 s, and 15 s with
/// sleeping threads; training steps took 1.6 times as long as with 200 rounds. On an idle machine 200 rounds were no
/// slower (64 and 768 tokens, training steps).
///
/// The library reads the number when it is loaded, before main(): if the environment does not set it, this sets it and
/// restarts the program in the same process, once. Returns if it is set already or cannot be. Call it before anything
/// is open or running.
void limit_openmp_spin(char** argv);

}  // namespace headscope::app
