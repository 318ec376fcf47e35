// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Exact activation patching: the corrupted run with one value taken from the clean run, for every place in turn.
// Threads: the compute thread. Errors: headscope::Error; Stopped, with finished cells in place.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/ask/metric.h"
#include "core/base/progress.h"
#include "core/model/edits/editor.h"
#include "core/store/ask/ask_file.h"

namespace headscope::model {
class Model;
}

namespace headscope::ask {

/// How finely a sweep over heads goes. Layer points are always swept by position.
enum class SweepBy : std::uint8_t { head, position, both, cell };

/// How clean and corrupted texts pair their positions.
enum class Alignment : std::uint8_t { equal, edges };

struct PatchOptions {
    std::vector<model::Point> points;
    Metric metric;
    SweepBy by = SweepBy::head;
    Alignment alignment = Alignment::equal;
    model::Editor* editor = nullptr;  ///< of both runs; null: none
    std::function<void()> saved;      ///< called now and then, with finished cells in place
};

/// Position of the clean text for each of the corrupted one, -1: none. Throws usage for lengths that differ without
/// Alignment::edges; `pair` is their number, for the message.
std::vector<std::int64_t> aligned(const std::vector<std::int32_t>& clean, const std::vector<std::int32_t>& corrupted,
                                  Alignment alignment, std::int64_t pair);

/// Positions of two texts that pair, as aligned() has them, of an encoder-decoder for its decoder's input apart.
struct AlignedTexts {
    std::vector<std::int64_t> own, target;
    /// Those that rows of a value count.
    const std::vector<std::int64_t>& rows_of(const model::PointKey& place, const model::Model& model) const;
};
AlignedTexts aligned_texts(const store::SequenceTokens& clean, const store::SequenceTokens& corrupted,
                           Alignment alignment, std::int64_t pair);

/// Fills /patch of `record`, whose sequences are the corrupted texts; `clean` has one for each.
void run_patch(model::Model& model, const std::vector<store::SequenceTokens>& clean, const PatchOptions& options,
               store::AskRecord& record, Progress& progress, const Cancellation& cancellation);

}  // namespace headscope::ask
