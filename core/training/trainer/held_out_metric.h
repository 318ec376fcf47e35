// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/data_set.h"
#include "core/evaluation/metrics/bleu.h"
#include "core/training/trainer/learner.h"

namespace headscope::training {

/// evaluation.metric of a job over the held-out batches. Threads: the compute thread.
///
/// `spans`: exact_match and f1 as of SQuAD 2.0, window by window: the text of the best start and end, at most 30 tokens
/// apart, against that of the labels; a window without the answer has the empty one. `translation`: BLEU of greedy
/// answers, as long as the job's sequences at most, against the targets' tokens as text.
class HeldOutMetric {
public:
    /// Throws Error(unsupported) for a metric of texts with a model that hashes words: hashes have no text.
    HeldOutMetric(const JobFile& job, const data::DataSet& data);

    bool is_loss() const { return metric_ == "loss"; }
    /// Keeps the model's classes, numbers, spans or texts of a batch where the metric is made of them: a second forward
    /// pass, or the answer token by token.
    void add(Learner& learner, const data::DataBatch& batch);
    /// `all`: loss and accuracy of the same batches.
    double value(const Loss& all) const;

private:
    void add_classes(model::Model& model, const model::Batch& read, const data::DataBatch& batch);
    void add_spans(model::Model& model, const model::Batch& read, const data::DataBatch& batch);
    void add_translations(model::Model& model, const data::DataBatch& batch);

    std::string metric_;
    data::ObjectiveSettings objective_;
    const data::DataSet& data_;
    std::int64_t longest_;  ///< tokens of a greedy answer
    std::int64_t classes_;
    std::vector<std::int64_t> found_, truth_;
    std::vector<double> numbers_, wanted_;
    double scores_ = 0;  ///< sum over `spans_` windows
    std::int64_t spans_ = 0;
    evaluation::BleuCounts bleu_;
};

}  // namespace headscope::training
