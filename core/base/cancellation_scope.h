// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"

namespace headscope {

/// While it lives, whatever reads files on this thread (InputFile, the JSON reader, analysis files) tests
/// `cancellation` every few megabytes and throws Stopped: so opening can be stopped without every reader of every
/// format handing the flag on. The innermost scope counts. Set by whoever starts a job on a thread; destroyed there.
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
