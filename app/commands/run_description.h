// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/store/evaluation_file.h"
#include "core/store/run_record.h"

namespace headscope::app {

/// What `info` tells of a training run: state, progress, losses, what it recorded.
nlohmann::json describe_run(const store::RunRecord& run);

/// Of an evaluation file: models, tasks, metrics, lengths.
nlohmann::json describe_evaluation(const store::Evaluation& evaluation, const std::string& name);

}  // namespace headscope::app
