// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The options of `headscope ask`, and the JSON of them that a file stores: --resume continues a file whose settings are
// those of the command. Threads: any.

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/analysis/job.h"
#include "core/base/io/sha256.h"
#include "core/store/analysis/analysis_header.h"

namespace headscope::ask {

/// Options that several tools read.
struct AskOptions {
    std::string tool, output, csv, interventions;
    bool resume = false;
    analysis::AnalysisJob job;  ///< model, texts and computing
    std::string metric, answer, against, position = "-1";
    std::vector<std::string> reference_tokens;
    std::string heads;          ///< "3.1,4.cross.2"; empty: all, or none, as the tool says
    std::int64_t window = 0;    ///< 0: the tool's own default
    std::int64_t generate = 0;  ///< tokens that the model appends
    std::int64_t top = 5;       ///< likeliest tokens that are kept
    std::int64_t seed = 0;
    std::vector<std::string> models;  ///< the first is job.model
};

/// Options of ask generate alone.
struct GenerateChoice {
    double temperature = 0;
    std::vector<std::string> replaced;  ///< STEP=TOKEN
    std::string record;                 ///< "maps", or empty

    void store(nlohmann::json& settings) const;
};

/// SHA-256 of the ids of texts and their targets, in the order in which they are read.
class TextsHash {
public:
    void add(const store::SequenceTokens& text);
    /// Once; nothing may follow.
    std::string finish() { return hash_.finish(); }

private:
    Sha256 hash_;
};

/// The settings without options of one tool alone, with the device and kernels that are chosen now.
nlohmann::json ask_settings(const AskOptions& options, const std::string& texts_sha256);

/// AskRecord::settings_json.
std::string stored_settings(const nlohmann::json& settings);

}  // namespace headscope::ask
