// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Training objectives: from a batch to named losses, through the model's own head. Threads: the compute thread.

#include <memory>
#include <string>
#include <vector>

#include "core/model/trainable.h"

namespace headscope::model {

struct NamedLoss {
    std::string name;
    LossSum loss;
};

class Objective {
public:
    virtual ~Objective() = default;

    /// Throws Error(unsupported) for a model that cannot be trained for it.
    virtual void check(const ModelConfig& config) const = 0;
    /// The names of what losses() returns; their sum is what is minimised.
    virtual std::vector<std::string> names() const = 0;
    /// Recorded by autograd where `training` is given; else as evaluation computes them.
    virtual std::vector<NamedLoss> losses(Trainable& model, const Batch& batch, const HeadLossOptions& options,
                                          const TrainingForward* training) const = 0;
};

/// Cross-entropy of the head's logits at the positions of Batch::labels: "loss". Any model with a head: an encoder with
/// labels at masked positions, an encoder-decoder with its target's successors.
std::unique_ptr<Objective> token_labels();
/// The same of a decoder, whose labels are the next tokens.
std::unique_ptr<Objective> next_token();
/// By the job's name of it: next_token, masked, shuffle_random, translation, classify (`classes` 1: mean squared error
/// of Batch::values), spans (the first and the last token of an answer). Error usage for another name.
std::unique_ptr<Objective> make_objective(const std::string& kind, std::int64_t classes);

}  // namespace headscope::model
