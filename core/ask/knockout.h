// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Attention knockout (Geva, Bastings, Filippova, Globerson, arXiv 2304.14767): the metric with attention from some
// positions to others forbidden, in all layers at once and in a window of layers around each.
// Threads: the compute thread. Errors: headscope::Error; Stopped, with finished cells in place.

#include <cstdint>
#include <functional>
#include <vector>

#include "core/analysis/switched_heads.h"
#include "core/ask/metric.h"
#include "core/base/progress.h"
#include "core/model/edits/intervention.h"
#include "core/store/ask/ask_file.h"

namespace headscope::model {
class Model;
}

namespace headscope::ask {

/// Attentions of an encoder-decoder that lose edges.
enum class KnockoutIn : std::uint8_t { all, encoder, decoder, cross };

struct KnockoutOptions {
    /// Positions. In an encoder-decoder they count what the attention's queries and keys are: source tokens in the
    /// encoder, the decoder's input in its self-attention, queries of the decoder's input and source keys in
    /// cross-attention.
    std::vector<model::PositionRange> queries, keys;
    std::vector<analysis::HeadIndex> heads;  ///< empty: all heads of `attention`
    KnockoutIn attention = KnockoutIn::all;  ///< all: all layers with scores
    /// Layers of a window, W: l - floor(W / 2) .. l - floor(W / 2) + W - 1 for each layer l, of the encoder or the
    /// decoder that l is in; 0: no windows.
    std::int64_t window = 0;
    Metric metric;
    model::Editor* editor = nullptr;  ///< of every run; null: none
    std::function<void()> saved;      ///< called now and then, with finished cells in place
};

/// Fills /knockout of `record`. Windows without a chosen head stay NaN. Throws usage for edges that no chosen head
/// sees: beyond the text, the causal order, or the window of its layer.
void run_knockout(model::Model& model, const KnockoutOptions& options, store::AskRecord& record, Progress& progress,
                  const Cancellation& cancellation);

}  // namespace headscope::ask
