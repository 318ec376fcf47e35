// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A model that learns: the gradient of the mean loss of a step's sequences, and the update by it. Knows nothing of
// files, events or schedules. Threads: the compute thread.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/precise_sum.h"
#include "core/checkpoint/save.h"
#include "core/data/batch/batch_source.h"
#include "core/model/objectives/objective.h"
#include "core/model/trainable.h"
#include "core/training/job/job.h"
#include "core/training/trainer/gradient_exchange.h"

namespace headscope::training {

/// Result of a pass over some sequences.
struct Loss {
    PreciseSum sum{};          ///< of the objective's first loss: cross-entropy in nats, or squared errors
    std::int64_t counted = 0;  ///< targets, or values
    std::int64_t correct = 0;  ///< targets that have the largest logit
    void add(const std::vector<model::NamedLoss>& losses);
    void add(const Loss& other);
    double mean() const { return share(sum.value()); }
    double accuracy() const { return share(static_cast<double>(correct)); }

private:
    double share(double part) const { return counted > 0 ? part / static_cast<double>(counted) : 0; }
};

/// Input of a model with this configuration from a batch of data, with the objective's targets. Token types are left
/// out where the model has no table of them.
model::Batch batch_of(const data::DataBatch& batch, const model::ModelConfig& config);

class Learner {
public:
    /// Throws Error(unsupported) for a model that cannot be trained for the job's objective.
    Learner(std::unique_ptr<model::Trainable> model, const JobFile& job);

    model::Trainable& model() { return *model_; }
    /// batch_of, with the token that the model's own files begin targets with (BART's is </s>), where they name one:
    /// generation and evaluation begin with it too.
    model::Batch read(const data::DataBatch& batch) const;

    /// From now on a step's gradients are those of all processes together, which call this together.
    void join(Processes& processes);
    /// How the gradients of several processes are added up (ChosenSums::text); empty for one.
    const std::string& exchange_text() const { return exchange_text_; }

    /// Sets summed_gradients() to those of the mean loss over all targets of `parts`, each of which is one pass, and of
    /// the other processes' parts. What dropout drops is decided by the job's seed, `step` and the part's number. With
    /// attention dropout each sequence is a pass, and its number in the step decides: how parts divide a step then
    /// changes no bit. Returns the loss of all.
    Loss gradients(const std::vector<data::DataBatch>& parts, std::int64_t step);
    /// [n], what update() goes by: the model's gradients, or, where a step of a bfloat16 job has several passes, their
    /// sums in float32, as the passes' own parts are lost beside a large bfloat16 sum.
    at::Tensor summed_gradients() const { return sums_.defined() ? sums_ : model_->gradients(); }
    /// Norm of the gradients as they are; not finite if one of them is not.
    double gradient_norm() const;
    /// One update, with the gradients scaled down so that their norm, `norm`, is at most the job's clip. `update`: of
    /// the running means, from 1.
    void update(double rate, double norm, std::int64_t update);

    /// The loss without dropout, not recorded.
    Loss evaluate(const data::DataBatch& batch);
    bool weights_finite() const;

    /// Content of optimizer.safetensors: first, second [n], and master [n] of a bfloat16 model; all float32.
    std::vector<checkpoint::OutputTensor> optimizer_tensors() const;
    /// Throws Error mismatch for one of another size.
    void read_optimizer(const checkpoint::Checkpoint& file);
    /// Everything that learning changes or starts from, to be handed to other processes; contiguous.
    std::vector<at::Tensor> state_tensors() const;

private:
    /// Among the passes of a step, of this process.
    struct PassPlace {
        bool first = true, last = true;
    };
    /// Adds a batch's gradients, times `scale`, and its loss.
    void pass(const model::Batch& batch, const model::TrainingForward& training, double scale, PassPlace place,
              Loss& loss);

    std::unique_ptr<model::Trainable> model_;
    std::unique_ptr<model::Objective> objective_;
    std::unique_ptr<GradientExchange> exchange_;  ///< null: alone
    std::string exchange_text_;
    JobFile job_;
    at::Tensor first_, second_, master_;
    at::Tensor sums_;  ///< float32 [n], or undefined
};

}  // namespace headscope::training
