// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/base/progress.h"

namespace headscope::app {

/// Thrown in the parent when its child has done the command: the child's exit status is the program's.
struct ChildDone {
    int status = 0;
};

/// The HDF5 library's parser has had memory errors, and analysis files may come from anywhere: commands that read them
/// do so in a child process. Splits the process: returns in the child, which runs the command. The parent waits,
/// forwards a stop to the child (and kills it when it does not end within a second), and then throws ChildDone,
/// Stopped, or, when the child crashed, an Error that names `files`. Call it before the first thread is started.
void continue_in_child(const std::vector<std::filesystem::path>& files, const Cancellation& cancellation);

/// True in such a child, which leaves with quick_exit: no library's clean-up runs over what a hostile file left in
/// memory.
bool in_child();

/// While it exists in such a child, opening files may take some seconds of processor time and a few times the files'
/// bytes of memory: limits for a library that loops or trusts a length. The parent reports the excess.
class OpeningLimits {
public:
    explicit OpeningLimits(const std::vector<std::filesystem::path>& files);
    ~OpeningLimits();
    OpeningLimits(const OpeningLimits&) = delete;
    OpeningLimits& operator=(const OpeningLimits&) = delete;
};

}  // namespace headscope::app
