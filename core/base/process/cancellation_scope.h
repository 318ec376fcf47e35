// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"

namespace headscope {

/// While it exists, readers on this thread (InputFile, the JSON reader, analysis files) test `cancellation` every few
/// megabytes and throw Stopped. The innermost scope counts. Created and destroyed on the thread that runs the job.
class CancellationScope {
public:
    explicit CancellationScope(const Cancellation& cancellation);
    ~CancellationScope();
    CancellationScope(const CancellationScope&) = delete;
    CancellationScope& operator=(const CancellationScope&) = delete;

private:
    const Cancellation* outer_;
};

/// True when this thread's scope was asked to stop; false without a scope.
bool cancellation_requested() noexcept;

/// Throws Stopped when cancellation_requested().
void check_cancellation();

}  // namespace headscope
