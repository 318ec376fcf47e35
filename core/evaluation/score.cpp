// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/score.h"

#include <algorithm>
#include <functional>

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

/// Passes over logits [n, V] and targets [n] of all sequences, in chunks of rows.
void each_chunk(model::Model& model, const data::DataBatch& batch, const ScoreOptions& options,
                const std::function<void(std::size_t sequence, at::Tensor logits, const at::Tensor& targets)>& take) {
    try {
        const c10::InferenceMode inference;
        if (batch.sequences == 0 || batch.length == 0) return;
        model::Batch read = training::batch_of(batch, model.config());
        if (const auto& token = options.fixed_token; token && token->position < batch.length)
            read.ids.select(1, token->position).fill_(token->id.value());
        const at::Tensor hidden = model.forward(read, forward_options(options));
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
    } catch (...) {
        throw current_error("evaluation");
    }
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
    return score_labels(model, batch, options);
}

std::vector<SequenceScore> score_labels(model::Model& model, const data::DataBatch& batch,
                                        const ScoreOptions& options) {
    std::vector<SequenceScore> scores(static_cast<std::size_t>(batch.sequences));
    each_chunk(model, batch, options, [&](std::size_t sequence, at::Tensor logits, const at::Tensor& targets) {
        add_chunk(std::move(logits), targets, scores[sequence]);
    });
    return scores;
}

std::vector<std::vector<double>> target_losses(model::Model& model, const data::DataBatch& batch,
                                               const ScoreOptions& options) {
    check_scorable(model);
    std::vector<std::vector<double>> losses(static_cast<std::size_t>(batch.sequences));
    each_chunk(model, batch, options, [&](std::size_t sequence, at::Tensor logits, const at::Tensor& targets) {
        const at::Tensor chosen = logits.gather(1, targets.unsqueeze(1));
        const at::Tensor some = losses_of(std::move(logits), chosen).to(at::kDouble).contiguous();
        const double* values = some.const_data_ptr<double>();
        losses[sequence].insert(losses[sequence].end(), values, values + some.numel());
    });
    return losses;
}

void WindowScorer::add(Window window) {
    const auto length = static_cast<std::int64_t>(window.ids.size());
    const std::int64_t room = std::max<std::int64_t>(1, options_.batch_tokens / std::max<std::int64_t>(1, length));
    if (waiting_.sequences > 0 && (waiting_.length != length || waiting_.sequences >= room)) flush();
    waiting_.length = length;
    ++waiting_.sequences;
    waiting_.ids.insert(waiting_.ids.end(), window.ids.begin(), window.ids.end());
    waiting_.targets.insert(waiting_.targets.end(), window.targets.begin(), window.targets.end());
}

void WindowScorer::flush() {
    for (const SequenceScore& one : score(model_, waiting_, options_)) scores_.add(one);
    waiting_ = {};
}

TokenScores score_source(model::Model& model, const data::BatchSource& source, std::int64_t sequences,
                         const ScoreOptions& options, const std::function<void(std::int64_t done)>& progress) {
    TokenScores scores;
    const std::int64_t step = std::max<std::int64_t>(1, options.batch_tokens / source.length());
    for (std::int64_t first = 0; first < sequences; first += step) {
        const std::int64_t count = std::min(step, sequences - first);
        for (const SequenceScore& one : score(model, source.read(first, count), options)) scores.add(one);
        if (progress) progress(first + count);
    }
    return scores;
}

}  // namespace headscope::evaluation
