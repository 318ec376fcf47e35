// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A continuation token by token, with each step's likeliest tokens and the row of every softmax head that led to it.
// Threads: the compute thread. Errors: headscope::Error; Stopped, with whole sequences in place.

#include <cstdint>
#include <functional>
#include <map>
#include <span>

#include "core/ask/generation_session.h"
#include "core/base/progress.h"
#include "core/store/ask/ask_file.h"

namespace headscope::ask {

/// `seed`: of text s, seed + s.
struct GenerationOptions : SessionOptions {
    std::int64_t tokens = 20;                       ///< steps
    std::map<std::int64_t, std::int64_t> replaced;  ///< step -> token in place of the chosen one
    std::function<void()> saved;
};

/// Adds the tables of `tokens` steps, unless the record has tables; throws limit for too many weights (`maps`).
void add_generation_tables(store::AskRecord& record, std::int64_t tokens, std::int64_t top, bool maps);
/// Puts the steps of one text into these tables, and marks it as done.
void put_generation(store::AskRecord& record, std::int64_t sequence, std::span<const GeneratedStep> steps);

/// Fills /generate of `record`, whose sequences are the prompts: token, log_probability (temperature 1) [S, T], top_id,
/// top_probability [S, T, K], entropy, sink, mean_distance [S, T, n, H] of the row that led to the token, with `maps`
/// also weights [S, T, n, H, keys]. An encoder-decoder's encoder reads the prompts, and its decoder continues their
/// targets: rows are the decoder's and those of cross-attention. Steps after an end token have no numbers; throws usage
/// for a replaced step that is after the end token of every text.
void run_generation(model::Model& model, const GenerationOptions& options, store::AskRecord& record, Progress& progress,
                    const Cancellation& cancellation);

}  // namespace headscope::ask
