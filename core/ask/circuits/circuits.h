// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Circuits of a model's weights: spectra of the QK and OV products of every head, copying, composition between heads
// of earlier and later layers, and the token pairs that a head relates most. Needs no text. Threads: the compute
// thread. Errors: headscope::Error; Stopped, with finished sites and pairs of sites in place.

#include <cstdint>
#include <functional>
#include <vector>

#include "core/analysis/switched_heads.h"
#include "core/base/progress.h"
#include "core/store/ask/ask_file.h"

namespace headscope::model {
class Model;
}

namespace headscope::ask::circuits {

struct CircuitsOptions {
    bool fold = false;       ///< norms ahead of attention and of the head are part of the maps they feed
    std::int64_t pairs = 0;  ///< token pairs of each product; 0: none
    std::vector<analysis::HeadIndex> heads;  ///< whose pairs are looked for; empty: all
    std::function<void()> saved;             ///< called now and then, with finished cells in place
};

/// Fills /circuits of `record`. Sites without maps of their own stay NaN. So do, with an encoder and a decoder,
/// eigenvalue scores of cross-attention, whose products lead from one stack to the other; what the encoder's heads
/// write as tokens; copying of another vocabulary's tokens; and composition with heads that read the other stream.
void run_circuits(const model::Model& model, const CircuitsOptions& options, store::AskRecord& record,
                  Progress& progress, const Cancellation& cancellation);

}  // namespace headscope::ask::circuits
