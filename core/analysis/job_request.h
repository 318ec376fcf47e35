// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// From a job to tokens and an AnalysisRequest. Errors: headscope::Error. Threads: plain functions.

#include "core/analysis/input.h"
#include "core/analysis/job.h"
#include "core/analysis/request.h"
#include "core/analysis/targets.h"
#include "core/model/load/residence.h"

namespace headscope::analysis {

/// An open checkpoint without weights.
struct JobModel {
    const checkpoint::Checkpoint& checkpoint;
    const model::Inspection& inspection;
    const tokenizer::Tokenizer* tokenizer;  ///< null: none
};

/// Without resources, chat template and check_length.
InputOptions input_options(const AnalysisJob& job, const JobModel& model);

/// How the decoder's input of an encoder-decoder is read.
TargetOptions target_options(const AnalysisJob& job, const model::ModelConfig& config);

/// The settings, with the text of an intervention file.
std::string with_interventions(const std::string& settings_json, const std::string& toml);

/// Moves the sequences out of `input`. Without layers, skip_layers and names.
/// The settings, with the residence that was taken.
std::string with_residence(const std::string& settings_json, model::Residence residence);

AnalysisRequest make_request(const AnalysisJob& job, const JobModel& model, Input& input,
                             const Cancellation& cancellation);

}  // namespace headscope::analysis
