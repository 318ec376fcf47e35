// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/analysis/job.h"
#include "core/ask/edits/intervention_file.h"
#include "core/ask/metric.h"
#include "core/ask/patch.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::app {

/// The options of `headscope ask`.
struct AskOptions {
    std::string tool, output, csv, interventions;
    bool resume = false;
    analysis::AnalysisJob job;  ///< model, texts and computing
    std::string metric, answer, against, position = "-1";
    std::string target = "next";
    std::int64_t top = 5;
    std::vector<std::string> clean, corrupted, clean_tokens, corrupted_tokens, reference_tokens;
    std::string sites, by = "head", align = "equal", how = "zero";
    std::vector<std::string> approximation;
    std::string integrated_sites;
    std::int64_t steps = 16;
    bool correlation = false, importance = false;
};

/// "464,\"the\"": ids, or quoted strings that must be one token each. Throws usage.
std::vector<std::int64_t> parse_tokens(const std::string& option, const std::string& list,
                                       const tokenizer::Tokenizer* tokenizer);

ask::Metric metric_of(const AskOptions& options, const tokenizer::Tokenizer* tokenizer);
std::vector<model::Point> points_of(const std::string& list);

/// The command line as JSON, for the file.
std::string settings_of(const AskOptions& options);

}  // namespace headscope::app
