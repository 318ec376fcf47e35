// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace headscope::app {

/// Whether a sub-command runs LibTorch's threads.
bool computes(const std::string& command);

/// OpenMP's threads that wait for work keep their processor busy for milliseconds, 300 000 rounds, which they take from
/// whatever runs beside them, their own kind included. On two processors that others used too, 5000 short sequences
/// took 120 s so, 15 s with sleeping threads, and training steps 1.6 times as long as with 200 rounds; with these the
/// least times were no longer than with more (64 and 768 tokens, training steps).
///
/// The library reads the number when it is loaded, before main(): where the environment says nothing of it, this begins
/// the program anew with it set, once, in the same process. Returns where that is done already or cannot be. Call it
/// before anything is open or running.
void wait_patiently(char** argv);

}  // namespace headscope::app
