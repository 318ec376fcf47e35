// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// How fast replays were on this machine, kept in the user's cache (replays.json).

#include <string>

#include "core/reproduce/outlook.h"

namespace headscope::app {

/// Keeps the pace of a paper's calibration. A cache that cannot be written is done without.
void keep_replay_pace(const std::string& paper, const reproduce::Pace& pace);

/// A sentence where so many minutes cannot decide the paper's claims, by the last calibration of that paper here; empty
/// where they can, or where none was kept. Reads a file: not for the window's thread.
std::string minutes_warning(const std::string& paper, const reproduce::Settings& settings);

}  // namespace headscope::app
