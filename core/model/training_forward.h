// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace headscope::model {

/// A forward pass that autograd records.
struct TrainingForward {
    /// Share of the numbers that are set to 0 in the embeddings and in what attention and feed-forward add to the
    /// residual stream; the others are scaled up. Guide streams are left whole.
    double dropout = 0;
    /// Dropout depends on this, the place in the model and the place in the pass alone. Make it a pure function of the
    /// job's seed, the step and the micro batch: a resumed job then drops the same.
    std::uint64_t dropout_seed = 0;
    /// The batch's first sequence is this one of a pass that several processes share: each drops what one process with
    /// the whole pass would drop.
    std::int64_t first_sequence = 0;
    /// Share of the attention weights that are set to 0 behind the normalizer (kernels/summary/attention_dropout.h). A
    /// pure function of the seed, the site and the sequence's number in the step, so accumulation changes nothing.
    double attention_dropout = 0;
    std::uint64_t attention_seed = 0;
    std::int64_t step_sequence = 0;  ///< number of the batch's first sequence among those of the step
};

}  // namespace headscope::model
