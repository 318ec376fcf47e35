// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/training/job/job_keys.h"

namespace headscope::training {

/// Keys of [model] that replace the preset's values in the native config.json (docs/file-formats.md). None has a
/// default: without the key the preset's value holds, without a preset the format's.
std::vector<JobKey> config_keys();

}  // namespace headscope::training
