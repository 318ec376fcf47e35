// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// From a job's preset and its keys of config.json to one native configuration.

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "core/model/config.h"
#include "core/training/job/job.h"

namespace headscope::training {

/// "head" of a native configuration that the job's objective is learned by, where a model has another one; else empty.
std::string other_head(const JobFile& job, model::HeadKind head, std::int64_t classes, bool has_vocabulary);

/// The preset's configuration, or the format's defaults without a preset, with the job's keys and the head of its
/// objective; vocabulary and longest text as they stand there. Throws Error with the place of the key that is wrong.
nlohmann::json preset_config(const JobFile& job);

}  // namespace headscope::training
