// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A continuation token by token, with each step's likeliest tokens and the row of every softmax head that led to it.
// Threads: the compute thread. Errors: headscope::Error; Stopped, with whole sequences in place.

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "core/base/progress.h"
#include "core/store/ask/ask_file.h"

namespace headscope::model {
class Editor;
class Model;
}  // namespace headscope::model

namespace headscope::ask {

struct GenerationOptions {
    std::int64_t tokens = 20;  ///< steps
    std::int64_t top = 5;
    double temperature = 0;  ///< 0: greedy
    std::uint64_t seed = 0;  ///< of text s: seed + s
    std::vector<std::int64_t> end_tokens;
    std::map<std::int64_t, std::int64_t> replaced;  ///< step -> token in place of the chosen one
    bool maps = false;                              ///< keeps the rows
    model::Editor* editor = nullptr;
    std::function<void()> saved;
};

/// Fills /generate of `record`, whose sequences are the prompts: token, log_probability (temperature 1) [S, T], top_id,
/// top_probability [S, T, K], entropy, sink, mean_distance [S, T, n, H] of the row that led to the token, with `maps`
/// also weights [S, T, n, H, keys]. Steps after an end token have no numbers.
void run_generation(model::Model& model, const GenerationOptions& options, store::AskRecord& record, Progress& progress,
                    const Cancellation& cancellation);

}  // namespace headscope::ask
