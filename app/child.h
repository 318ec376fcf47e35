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
/// do so in a child process. Splits the process: returns in the child, which goes on with the command. The parent
/// waits, hands a stop on to the child (and kills it when it does not end within a second), and then throws ChildDone,
/// Stopped, or, when the child crashed, an Error that names `files`. Call it before the first thread is started.
void continue_in_child(const std::vector<std::filesystem::path>& files, const Cancellation& cancellation);

/// True in such a child, which leaves with quick_exit: no library's clean-up runs over what a hostile file left in
/// memory.
bool in_child();

/// While it lives in such a child, opening files may take some seconds of processor time and some times the files'
/// bytes of memory, no more: what a library that runs in circles or believes a length is stopped by. The parent tells.
class OpeningLimits {
public:
    explicit OpeningLimits(const std::vector<std::filesystem::path>& files);
    ~OpeningLimits();
    OpeningLimits(const OpeningLimits&) = delete;
    OpeningLimits& operator=(const OpeningLimits&) = delete;
};

}  // namespace headscope::app
