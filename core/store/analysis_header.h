// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/site.h"

namespace headscope::store {

/// One analysed sequence, as /tokens stores it.
struct SequenceTokens {
    std::vector<std::int32_t> ids;
    std::vector<std::string> pieces;                      ///< surface forms
    std::vector<std::array<std::int64_t, 2>> offsets;     ///< bytes in `text`
    std::string text;
};

/// What is recorded beyond the indicators, histograms, thumbnails, column mass and loss that are always there.
struct RecordLevels {
    bool maps = false, attention = false, states = false, logits = false, implicit = false;
};

/// Everything about an analysis that is known before the first layer ran: fixes every dataset's shape, so that all of
/// them are allocated when the file is created and a killed job leaves a file that opens.
struct AnalysisHeader {
    std::string program_version, created;                 ///< created: ISO 8601, UTC
    std::string model_name, model_type, model_sha256;
    std::string config_json;                              ///< as stored, with every choice filled in
    std::string settings_json;                            ///< the request: record, dtype, kernels, windows, ...
    std::uint64_t seed = 0;
    std::vector<std::string> mixers;                      ///< per layer
    std::vector<Site> sites;
    std::vector<SequenceTokens> sequences;
    RecordLevels record;
    std::vector<std::int64_t> local_distances{0, 1, 2, 3};
    std::int64_t hidden_boundaries = 0;                   ///< layers + 1, for /states/hidden_*
    std::int64_t vocabulary = 0;                          ///< for /output/logits
    std::int64_t max_positions = 0;                       ///< 0: no limit; marked in figures when a sequence passes it
    std::int64_t histogram_row_step = 0;                  ///< 0: by length, see kernels::StatisticsRequest
    bool maps_float16 = false;

    std::int64_t longest() const;                         ///< tokens of the longest sequence
    std::int32_t most_heads() const;
};

}  // namespace headscope::store
