// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace headscope::training {

/// What a job (TOML) calls its runs; empty: nothing, or it cannot be read as a job. Any thread.
std::string job_name(const std::string& job);

}  // namespace headscope::training
