// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Losses and hits of a model on sequences with targets, in bounded memory: logits come in chunks of rows. Functions
// with GroupedPasses add passes to those of a task; the others run one. Threads: the compute thread. Errors: Error
// (what Model::forward throws; usage for a model that predicts nothing); Stopped when cancelled.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/data/batch/batch_source.h"
#include "core/data/settings.h"
#include "core/evaluation/grouped_passes.h"
#include "core/evaluation/rolling_windows.h"
#include "core/evaluation/token_scores.h"
#include "core/model/model.h"

namespace headscope::evaluation {

struct ScoreOptions {
    std::set<int> skip_layers;
    bool beyond_positions = false;
    /// Read at its position in every sequence that has it, as a model was trained that way; the id is known.
    std::optional<data::FixedToken> fixed_token;
    std::int64_t batch_tokens = 4096;  ///< of one forward pass, at least one sequence
    /// Tokens of the passes that run each layer together where weights stream, at least one pass, and the place of
    /// their hidden states meanwhile. Without a folder all of these wait in memory, up to that limit.
    std::int64_t group_tokens = 1 << 18;
    model::WaitingPlace waiting{256e6, {}};
    const Cancellation* cancellation = nullptr;
};

/// Options of a forward pass.
model::ForwardOptions forward_options(const ScoreOptions& options);

/// Throws usage for a model without a head or one that is not causal.
void check_scorable(const model::Model& model);

/// One score a sequence. Losses: log-softmax in float32 of float32 logits, summed in float64.
std::vector<SequenceScore> score(model::Model& model, const data::DataBatch& batch, const ScoreOptions& options);

/// The same of any model with a head, whose targets are of the tokens that its head is asked about: an encoder's own,
/// what the decoder of an encoder-decoder is to say. `scores` must exist until the passes have run.
void add_label_scores(GroupedPasses& passes, data::DataBatch batch, TokenScores& scores);

/// score() target by target: for each sequence the loss of every target in order.
using TargetLosses = std::vector<std::vector<double>>;
void add_target_losses(GroupedPasses& passes, data::DataBatch batch, std::function<void(const TargetLosses&)> take);
TargetLosses target_losses(model::Model& model, const data::DataBatch& batch, const ScoreOptions& options);

/// Gathers windows until a batch of equal lengths is full, and scores it.
class WindowScorer {
public:
    WindowScorer(model::Model& model, const ScoreOptions& options, TokenScores& scores, Share progress = {})
        : scores_(scores), passes_(model, options, std::move(progress)) {}
    void add(Window window);
    /// GroupedPasses::report().
    void report(double share) { passes_.report(share); }
    void finish();

private:
    void flush();

    TokenScores& scores_;
    GroupedPasses passes_;
    data::DataBatch waiting_;
};

/// Sequences [0, sequences) of a source.
TokenScores score_source(model::Model& model, const data::BatchSource& source, std::int64_t sequences,
                         const ScoreOptions& options, const Share& progress = {});

}  // namespace headscope::evaluation
