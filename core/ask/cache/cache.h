// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A smaller key-value cache: the keys of a context that stay, and how far the outputs of later queries change, each
// site alone. Threads: the compute thread. Errors: headscope::Error; Stopped, with whole texts in place.

#include <cstdint>
#include <functional>
#include <vector>

#include "core/ask/cache/scorers.h"
#include "core/base/progress.h"
#include "core/store/ask/ask_file.h"

namespace headscope::model {
class Editor;
class Model;
}  // namespace headscope::model

namespace headscope::ask::cache {

struct CacheOptions {
    std::vector<Scorer> scorers;
    std::vector<double> ratios;  ///< shares of the context's keys that are removed
    ScorerOptions scoring;
    std::int64_t future = 512;  ///< later positions of expected_attention
    model::Editor* editor = nullptr;
    std::function<void()> saved;  ///< called when a text is in place
};

/// Fills /cache of `record`. Sites without softmax weights have no numbers. Of an encoder-decoder the context is the
/// decoder's input, and its self-attention alone has numbers: the source's keys do not grow.
void run_cache(model::Model& model, const CacheOptions& options, store::AskRecord& record, Progress& progress,
               const Cancellation& cancellation);

}  // namespace headscope::ask::cache
