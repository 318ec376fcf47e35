// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/training/job/job.h"

namespace headscope::test::jobs {

/// A job of required keys alone.
inline const std::string kLeast = "[data]\ncorpus = \"kjv\"\n";

inline training::JobFile read(const std::string& text) {
    return training::read_job(text, "job.toml");
}

}  // namespace headscope::test::jobs
