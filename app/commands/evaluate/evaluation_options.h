// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace headscope::app {

/// Options of `headscope evaluate`.
struct EvaluationOptions {
    std::vector<std::string> models, data, task_options;
    std::vector<std::string> tasks;  ///< expanded: no sets
    std::string adapter, output, lengths, skip, haystack, dump, variant, predictions;
    std::string prefix = "auto", dtype = "float32", weights = "auto", device = "cpu", kernels = "auto";
    std::string shots_rule = "drawn", items, prompts;
    std::int64_t stride = 0, tokens = 0, sequences = 0, batch_tokens = 4096;
    std::int64_t beams = 0, batch = 8;  ///< beams 0: as the model's files say
    double length_penalty = 0.6;
    bool length_penalty_given = false;
    std::int64_t average = 0;  ///< last snapshots of each run; 0: the best one
    std::int64_t shots = 0, limit = 0, bootstrap = 100'000;
    std::uint64_t seed = 1;
    bool seed_given = false;
    std::vector<std::string> given;  ///< options by their names (option_use.h)
    int threads = 0;
    bool json = false, beyond_positions = false, baselines = false;
};

/// Adds them to the command; `options` must outlive it.
void add_evaluation_options(CLI::App& command, EvaluationOptions& options);

}  // namespace headscope::app
