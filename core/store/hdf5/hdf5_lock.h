// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <mutex>

namespace headscope::store {

/// HDF5 as Debian builds it is not thread safe, whichever files its callers have open: one call at a time in the
/// process. Every public function of AnalysisFile and AnalysisWriter that reaches the library holds this lock while it
/// does; nothing else includes <hdf5.h>. A thread may take it again while it has it. It is held for single reads and
/// writes, not while anything is computed or synced to the disk, so a reader waits for one block at most.
class Hdf5Lock {
public:
    Hdf5Lock() : lock_(mutex()) {}

private:
    /// Never destroyed: threads that outlive main() may still close files.
    static std::recursive_mutex& mutex();

    std::lock_guard<std::recursive_mutex> lock_;
};

}  // namespace headscope::store
