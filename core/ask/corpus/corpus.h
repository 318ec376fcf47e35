// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Heads over a corpus: measures of any number of texts in bounded memory, and texts that show each head at work
// (HeadVis, transformer-circuits.pub 2026). Threads: the compute thread. Errors: headscope::Error; Stopped, with whole
// texts counted.

#include <cstdint>
#include <functional>

#include "core/base/progress.h"
#include "core/store/ask/ask_file.h"

namespace headscope::model {
class Editor;
class Model;
}  // namespace headscope::model

namespace headscope::ask::corpus {

/// Texts that an interval of maxima keeps by chance, and that the highest one keeps by their maximum.
inline constexpr std::int64_t kKeptByChance = 3, kKeptHighest = 10;

struct CorpusOptions {
    std::int64_t documents = 0;  ///< in the source
    std::int64_t intervals = 5;
    bool two_passes = false;  ///< the texts that set the intervals are read again and may be kept
    std::uint64_t seed = 0;
    model::Editor* editor = nullptr;
    std::function<void()> saved;  ///< called when a text is counted
};

using CorpusTake = std::function<void(std::int64_t document, store::SequenceTokens text)>;
/// Hands on documents `first` to `end` - 1 in order.
using CorpusSource = std::function<void(std::int64_t first, std::int64_t end, const CorpusTake& take)>;

/// Fills /corpus of `record`, whose sequences are the texts that are kept; it begins with one text of the corpus.
/// Texts of fewer than 2 tokens do not count. Of an encoder-decoder the texts are its decoder's inputs, and the
/// decoder's self-attention alone has numbers.
void run_corpus(model::Model& model, const CorpusSource& source, const CorpusOptions& options, store::AskRecord& record,
                Progress& progress, const Cancellation& cancellation);

}  // namespace headscope::ask::corpus
