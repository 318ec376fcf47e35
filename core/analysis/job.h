// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A user's choices for one analysis, from the command line or the window, and the table of these options. The analysis
// file stores them (root attribute "settings"; docs/file-formats.md names the keys). Threads: any.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/base/option.h"
#include "core/store/analysis/analysis_header.h"

namespace headscope::analysis {

struct AnalysisJob {
    std::string model;  ///< path as given
    // Input
    std::vector<std::string> texts, pairs, files, tokens, examples, targets, target_tokens;
    std::string labels, bos = "auto";
    bool chat = false, windows = false, repeat_token = false;
    std::int64_t length = 0;                ///< 0: all
    std::int64_t segment = 0, memory = -1;  ///< model::Segments
    // Measuring
    std::vector<std::string> record;
    std::string layers, skip, switch_off, switch_off_how = "zero", interventions;
    bool beyond_positions = false, all_rows = false, maps_int16 = false;
    // Computing
    std::string dtype = "float32", weights = "auto", device = "cpu", kernels = "auto";
    std::int64_t threads = 0;  ///< 0: all processors

    bool operator==(const AnalysisJob&) const = default;
};

struct JobOption : Option {
    std::variant<bool AnalysisJob::*, std::int64_t AnalysisJob::*, std::string AnalysisJob::*,
                 std::vector<std::string> AnalysisJob::*>
        member;
    std::string key;     ///< in the settings; a path for segments/tokens
    bool input = false;  ///< about the text
};

/// In the order of `headscope analyze --help`.
std::span<const JobOption> job_options();

/// Texts, targets and pairs as their number: the file holds their tokens. `labels` and `segments` only where given.
nlohmann::json to_json(const AnalysisJob& job);
/// Settings of any file: missing and wrong values keep their defaults, as do texts, targets and pairs.
AnalysisJob job_of(const nlohmann::json& settings);

/// Names of --record to levels; norms includes maps. Throws usage for unknown names.
store::RecordLevels record_levels(const std::vector<std::string>& names);

}  // namespace headscope::analysis
