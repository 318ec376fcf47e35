// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Forward passes of a task. Where weights stream, passes wait until a group of them is full, and pass each layer
// together: the file of weights is read once a group. Elsewhere each runs at once. The results are equal bit for bit.
// Threads: the compute thread. Errors: Error (what Model::forward throws), Stopped.

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/model/model.h"

namespace headscope::evaluation {

struct ScoreOptions;

/// Receives the share of a task that is done, 0 to 1.
using Share = std::function<void(double done)>;

class GroupedPasses {
public:
    /// Receives a pass's final hidden states.
    using Take = std::function<void(const at::Tensor& hidden, const model::Batch& batch)>;

    /// `progress` receives shares of the task. References must outlive this.
    GroupedPasses(model::Model& model, const ScoreOptions& options, Share progress = {});

    /// Results come in the order of the passes. `cache`, which may be null, has to exist until `take` has returned; one
    /// of Cache::chosen_in_turn() may be added before its source is filled.
    void add(model::Batch batch, Take take, model::Cache* cache = nullptr);
    /// The passes so far are this share of the task. It is reported at once or, where passes wait, by layer and pass
    /// once they run.
    void report(double share);
    /// Runs the passes that wait.
    void finish();

    model::Model& model() const { return model_; }
    const ScoreOptions& options() const { return options_; }

private:
    struct Waiting {
        model::Batch batch;
        Take take;
        model::Cache* cache;
        double tokens;
    };
    bool is_full(double tokens, double bytes) const;
    void run();

    model::Model& model_;
    const ScoreOptions& options_;
    Share progress_;
    bool groups_;
    double most_bytes_ = 0;  ///< of hidden states of a group
    std::vector<Waiting> waiting_;
    double tokens_ = 0, bytes_ = 0;  ///< of the passes that wait
    double before_ = 0, with_ = 0;   ///< shares of the task without and with them
};

}  // namespace headscope::evaluation
