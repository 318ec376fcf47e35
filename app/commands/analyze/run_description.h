// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/store/ask/ask_file.h"
#include "core/store/evaluation/evaluation_file.h"
#include "core/store/run/run_record.h"

namespace headscope::app {

/// JSON of `info` about a training run: state, progress, losses, recorded values.
nlohmann::json describe_run(const store::RunRecord& run);

/// Adds what the settings of an analysis, evaluation or ask file say about the device that computed, and about the one
/// asked for.
void describe_device(nlohmann::json& document, const nlohmann::json& settings);

/// JSON of an evaluation file: models, tasks, metrics, lengths.
nlohmann::json describe_evaluation(const store::Evaluation& evaluation, const std::string& name);

/// JSON of an ask file: tool, model, texts, tables.
nlohmann::json describe_ask(const store::AskRecord& record, const std::string& name);

}  // namespace headscope::app
