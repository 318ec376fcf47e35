// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/store/run/run_record.h"
#include "core/workspace/live_run.h"

namespace headscope::workspace {

/// A run that has only its run.h5 left, as views of journals know it.
LiveRun live_run(const store::RunRecord& record);

}  // namespace headscope::workspace
