// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/training/trainer/learner.h"

namespace headscope::training {

/// evaluation.metric of a job over the held-out batches. Threads: the compute thread.
class HeldOutMetric {
public:
    explicit HeldOutMetric(const JobFile& job);

    bool is_loss() const { return metric_ == "loss"; }
    /// Keeps the model's classes, or numbers, of a batch where the metric is made of them: a second forward pass.
    void add(Learner& learner, const data::DataBatch& batch);
    /// `all`: loss and accuracy of the same batches.
    double value(const Loss& all) const;

private:
    std::string metric_;
    std::int64_t classes_;
    std::vector<std::int64_t> found_, truth_;
    std::vector<double> numbers_, wanted_;
};

}  // namespace headscope::training
