// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/score.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include "core/base/error.h"
#include "core/training/trainer/learner.h"

namespace headscope::evaluation {
namespace {

/// Rows of one sequence that have a target, and the targets.
struct Wanted {
    std::vector<std::int64_t> rows, targets;
};

Wanted wanted_of(const data::DataBatch& batch, std::int64_t sequence) {
    Wanted wanted;
    const std::int64_t length = batch.target_ids.empty() ? batch.length : batch.target_length;
    for (std::int64_t i = 0; i < length; ++i) {
        const std::int64_t target = batch.targets[static_cast<std::size_t>(sequence * length + i)];
        if (target == data::no_target) continue;
        wanted.rows.push_back(i);
        wanted.targets.push_back(target);
    }
    return wanted;
}

/// The loss of each of targets [n] by logits [n, V], which are overwritten.
at::Tensor losses_of(at::Tensor logits, const at::Tensor& chosen) {
    const at::Tensor largest = logits.amax(1, true);
    return logits.sub_(largest).exp_().sum(1).log() - (chosen - largest).squeeze(1);
}

/// Adds what a chunk of logits [n, V] says of its targets [n]. The logits are overwritten.
void add_chunk(at::Tensor logits, const at::Tensor& targets, SequenceScore& score) {
    const at::Tensor chosen = logits.gather(1, targets.unsqueeze(1));
    // Equal logits count for the target: a model that says the same of all tokens is right about none, though.
    const at::Tensor larger = (logits > chosen).sum(1), equal = (logits == chosen).sum(1);
    const at::Tensor rank = larger + equal;  // 1: the largest, and alone; 0: not a number, which is right about nothing
    score.correct += (rank == 1).sum().item<std::int64_t>();
    score.in_five += ((rank >= 1) & (rank <= 5)).sum().item<std::int64_t>();
    score.loss += losses_of(std::move(logits), chosen).sum(at::kDouble).item<double>();
    score.targets += targets.numel();
}

void check_targets(const model::Model& model, const Wanted& wanted) {
    const std::int64_t columns = model.config().head_columns();
    for (const std::int64_t target : wanted.targets) {
        if (target >= 0 && target < columns) continue;
        throw Error(ErrorCode::limit, "targets", "expected ids from 0 to " + std::to_string(columns - 1),
                    "found " + std::to_string(target));
    }
}

/// Receives logits [n, V] and targets [n] of a sequence.
using TakeChunk = std::function<void(std::size_t sequence, at::Tensor logits, const at::Tensor& targets)>;

/// Passes over all sequences' targets in chunks of rows.
void each_chunk(const GroupedPasses& passes, const data::DataBatch& batch, const at::Tensor& hidden,
                const TakeChunk& take) {
    model::Model& model = passes.model();
    const ScoreOptions& options = passes.options();
    const auto step = static_cast<std::size_t>(model.logit_rows());
    for (std::int64_t s = 0; s < batch.sequences; ++s) {
        const Wanted wanted = wanted_of(batch, s);
        check_targets(model, wanted);
        for (std::size_t first = 0; first < wanted.rows.size(); first += step) {
            if (options.cancellation) options.cancellation->check();
            const std::size_t count = std::min(step, wanted.rows.size() - first);
            const auto part = [&](const std::vector<std::int64_t>& values) {
                return at::tensor(at::ArrayRef<std::int64_t>(values).slice(first, count), at::kLong);
            };
            const at::Tensor rows = hidden.select(0, s).index_select(0, part(wanted.rows));
            take(static_cast<std::size_t>(s), model.logits(rows), part(wanted.targets));
        }
    }
}

/// Adds a pass of the batch, after which `take` gets all chunks before `done` is called.
void add_batch(GroupedPasses& passes, data::DataBatch batch, TakeChunk take, std::function<void()> done) {
    try {
        const c10::InferenceMode inference;
        if (batch.sequences == 0 || batch.length == 0) return done();
        model::Batch read = training::batch_of(batch, passes.model().config());
        if (const auto& token = passes.options().fixed_token; token && token->position < batch.length)
            read.ids.select(1, token->position).fill_(token->id.value());
        passes.add(std::move(read), [&passes, batch = std::move(batch), take = std::move(take), done = std::move(done)](
                                        const at::Tensor& hidden, const model::Batch&) {
            each_chunk(passes, batch, hidden, take);
            done();
        });
    } catch (...) {
        throw current_error("evaluation");
    }
}

using TakeScores = std::function<void(const std::vector<SequenceScore>& scores)>;

void add_scores(GroupedPasses& passes, data::DataBatch batch, TakeScores take) {
    const auto scores = std::make_shared<std::vector<SequenceScore>>(static_cast<std::size_t>(batch.sequences));
    add_batch(
        passes, std::move(batch),
        [scores](std::size_t sequence, at::Tensor logits, const at::Tensor& targets) {
            add_chunk(std::move(logits), targets, (*scores)[sequence]);
        },
        [scores, take = std::move(take)] { take(*scores); });
}

}  // namespace

model::ForwardOptions forward_options(const ScoreOptions& options) {
    model::ForwardOptions forward;
    forward.skip_layers = options.skip_layers;
    forward.beyond_positions = options.beyond_positions;
    forward.cancellation = options.cancellation;
    return forward;
}

void check_scorable(const model::Model& model) {
    if (!model.causal() || model.config().encoder)
        throw Error(ErrorCode::usage, "evaluate", "expected a decoder", "found " + model.config().family);
    if (!model.has_head())
        throw Error(ErrorCode::usage, "evaluate", "expected a model with a head for the vocabulary",
                    "found none in the file");
}

std::vector<SequenceScore> score(model::Model& model, const data::DataBatch& batch, const ScoreOptions& options) {
    check_scorable(model);
    std::vector<SequenceScore> scores;
    GroupedPasses passes(model, options);
    add_scores(passes, batch, [&scores](const std::vector<SequenceScore>& made) { scores = made; });
    passes.finish();
    return scores;
}

void add_label_scores(GroupedPasses& passes, data::DataBatch batch, TokenScores& scores) {
    add_scores(passes, std::move(batch), [&scores](const std::vector<SequenceScore>& some) {
        for (const SequenceScore& one : some) scores.add(one);
    });
}

void add_target_losses(GroupedPasses& passes, data::DataBatch batch, std::function<void(const TargetLosses&)> take) {
    check_scorable(passes.model());
    const auto losses = std::make_shared<TargetLosses>(static_cast<std::size_t>(batch.sequences));
    add_batch(
        passes, std::move(batch),
        [losses](std::size_t sequence, at::Tensor logits, const at::Tensor& targets) {
            const at::Tensor chosen = logits.gather(1, targets.unsqueeze(1));
            const at::Tensor some = losses_of(std::move(logits), chosen).to(at::kDouble).contiguous();
            const double* values = some.const_data_ptr<double>();
            (*losses)[sequence].insert((*losses)[sequence].end(), values, values + some.numel());
        },
        [losses, take = std::move(take)] { take(*losses); });
}

TargetLosses target_losses(model::Model& model, const data::DataBatch& batch, const ScoreOptions& options) {
    TargetLosses losses;
    GroupedPasses passes(model, options);
    add_target_losses(passes, batch, [&losses](const TargetLosses& made) { losses = made; });
    passes.finish();
    return losses;
}

void WindowScorer::add(Window window) {
    const auto length = static_cast<std::int64_t>(window.ids.size());
    const std::int64_t most = passes_.options().batch_tokens;
    const std::int64_t room = std::max<std::int64_t>(1, most / std::max<std::int64_t>(1, length));
    if (waiting_.sequences > 0 && (waiting_.length != length || waiting_.sequences >= room)) flush();
    waiting_.length = length;
    ++waiting_.sequences;
    waiting_.ids.insert(waiting_.ids.end(), window.ids.begin(), window.ids.end());
    waiting_.targets.insert(waiting_.targets.end(), window.targets.begin(), window.targets.end());
}

void WindowScorer::finish() {
    flush();
    passes_.finish();
}

void WindowScorer::flush() {
    check_scorable(passes_.model());
    add_label_scores(passes_, std::exchange(waiting_, {}), scores_);
}

TokenScores score_source(model::Model& model, const data::BatchSource& source, std::int64_t sequences,
                         const ScoreOptions& options, const Share& progress) {
    check_scorable(model);
    TokenScores scores;
    GroupedPasses passes(model, options, progress);
    const std::int64_t step = std::max<std::int64_t>(1, options.batch_tokens / source.length());
    for (std::int64_t first = 0; first < sequences; first += step) {
        const std::int64_t count = std::min(step, sequences - first);
        add_label_scores(passes, source.read(first, count), scores);
        passes.report(static_cast<double>(first + count) / static_cast<double>(sequences));
    }
    passes.finish();
    return scores;
}

}  // namespace headscope::evaluation
