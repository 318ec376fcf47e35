// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/speed.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <c10/core/InferenceMode.h>

#include "core/base/error.h"
#include "core/cost/latency.h"
#include "core/data/random.h"
#include "core/model/heads/text_rows.h"
#include "core/training/trainer/learner.h"

namespace headscope::evaluation {
namespace {

using model::HeadKind;

constexpr double kMaskedShare = 0.15;

/// Objective that fits the model's head; empty: none.
std::string objective_for(const model::ModelConfig& config) {
    if (config.head == HeadKind::vocabulary)
        return config.encoder ? "translation" : config.causal ? "next_token" : "masked";
    if (config.encoder) return "";
    if (config.head == HeadKind::sequence_classes) return "classify";
    return !config.causal && config.head == HeadKind::token_classes && config.classes == 3 ? "shuffle_random" : "";
}

/// Random tokens, and a label wherever the objective wants one.
data::DataBatch random_batch(const model::ModelConfig& config, const SpeedOptions& options, std::int64_t length) {
    data::Random random(options.seed, 0);
    data::DataBatch batch;
    batch.sequences = options.batch;
    batch.length = length;
    const std::int64_t tokens = options.batch * length;
    const auto& hashed = config.hashed;
    // Words have ids in the range of a hash embedding; special tokens have no bits.
    const std::int64_t lowest = hashed.is_table() ? 0 : tokenizer::kSpecialTokens;
    const std::int64_t highest = config.encoder ? config.encoder->ids() : config.ids();
    for (std::int64_t i = 0; i < tokens; ++i) batch.ids.push_back(lowest + random.below(highest - lowest));
    if (hashed.kind == tokenizer::EmbeddingKind::characters) {
        for (std::int64_t i = 0; i < tokens; ++i) batch.points.push_back(random.below(std::int64_t{0xD800}));
    } else if (hashed.bits > 0) {
        batch.bits_per_token = hashed.bits;
        for (std::int64_t i = 0; i < tokens * hashed.bits; ++i)
            batch.bits.push_back(static_cast<std::uint8_t>(random.below(std::int64_t{2})));
    }
    if (config.encoder) {
        batch.target_length = length;
        for (std::int64_t i = 0; i < tokens; ++i) batch.target_ids.push_back(random.below(config.ids()));
    }
    const std::int64_t columns = std::max<std::int64_t>(config.head_columns(), 1);
    if (config.head == HeadKind::sequence_classes) {
        for (std::int64_t i = 0; i < options.batch; ++i) {
            if (columns == 1)
                batch.values.push_back(static_cast<float>(random.uniform()));
            else
                batch.targets.push_back(random.below(columns));
        }
        batch.counted = options.batch;
        return batch;
    }
    const bool masked = objective_for(config) == "masked";
    for (std::int64_t i = 0; i < tokens; ++i) {
        const bool counts = !masked || random.uniform() < kMaskedShare;
        batch.targets.push_back(counts ? random.below(columns) : data::no_target);
        batch.counted += counts ? 1 : 0;
    }
    return batch;
}

/// Runs after two that do not count, until time is up or they agree.
SpeedValue timed(const std::string& metric, const SpeedOptions& options, const ScoreOptions& score,
                 const std::function<void()>& run) {
    using Clock = std::chrono::steady_clock;
    constexpr std::size_t warm_ups = 2, least = 3, most = 30;
    const auto begin = Clock::now();
    const auto since = [](Clock::time_point then) {
        return std::chrono::duration<double>(Clock::now() - then).count();
    };
    std::vector<double> values;
    for (std::size_t i = 0; i < warm_ups + most; ++i) {
        if (score.cancellation) score.cancellation->check();
        const auto start = Clock::now();
        run();
        if (i >= warm_ups) values.push_back(since(start) * 1000 / static_cast<double>(options.batch));
        if (values.size() >= least && since(begin) > options.seconds) break;
    }
    const double median = cost::percentiles(values).median;
    return {metric, median, cost::relative_spread(values) * median, std::ssize(values)};
}

void pass(model::Model& model, const model::Batch& batch, const model::ForwardOptions& forward) {
    const c10::InferenceMode inference;
    const at::Tensor hidden = model.forward(batch, forward);
    if (!model.has_head() && !model.has_classes()) return;
    if (model.config().head == HeadKind::sequence_classes) {
        model::text_logits(model, hidden, batch);
        return;
    }
    const at::Tensor rows = hidden.flatten(0, 1);
    for (std::int64_t first = 0; first < rows.size(0); first += model.logit_rows())
        model.logits(rows.narrow(0, first, std::min(model.logit_rows(), rows.size(0) - first)));
}

}  // namespace

std::vector<SpeedValue> measure_speed(model::Model& model, const SpeedOptions& options, std::int64_t length,
                                      const ScoreOptions& score) {
    const data::DataBatch batch = random_batch(model.config(), options, length);
    const model::Batch read = training::batch_of(batch, model.config());
    model::ForwardOptions forward;
    forward.skip_layers = score.skip_layers;
    forward.beyond_positions = score.beyond_positions;
    forward.cancellation = score.cancellation;
    std::vector<SpeedValue> values{timed("forward_ms", options, score, [&] { pass(model, read, forward); })};
    const std::string objective = objective_for(model.config());
    if (!options.open || objective.empty()) return values;
    training::JobFile job;
    job.data.objective.kind = objective;
    job.data.objective.classes = model.config().classes;
    job.data.sequence_length = length;
    job.training.batch = options.batch;
    std::optional<training::Learner> learner;
    try {
        learner.emplace(options.open(), job);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::unsupported) throw;
        return values;
    }
    std::int64_t step = 0;
    values.push_back(timed("step_ms", options, score, [&] {
        learner->gradients({batch}, step);
        learner->update(1e-5, learner->gradient_norm(), ++step);
    }));
    return values;
}

}  // namespace headscope::evaluation
