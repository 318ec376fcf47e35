// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/held_out_metric.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "core/evaluation/metrics/classification.h"
#include "core/model/heads/text_rows.h"

namespace headscope::training {

HeldOutMetric::HeldOutMetric(const JobFile& job)
    : metric_(job.evaluation.metric), classes_(job.data.objective.classes) {}

void HeldOutMetric::add(Learner& learner, const data::DataBatch& batch) {
    if (is_loss() || metric_ == "accuracy") return;
    const at::NoGradGuard no_gradient;
    const model::Batch read = learner.read(batch);
    model::Model& model = learner.model().model();
    const at::Tensor logits = model::text_logits(model, model.forward(read), read).to(at::kDouble).contiguous();
    const double* row = logits.const_data_ptr<double>();
    for (std::int64_t i = 0; i < batch.sequences; ++i, row += classes_) {
        const auto item = static_cast<std::size_t>(i);
        if (classes_ == 1) {
            numbers_.push_back(*row);
            wanted_.push_back(batch.values.at(item));
        } else {
            found_.push_back(std::max_element(row, row + classes_) - row);
            truth_.push_back(batch.targets.at(item));
        }
    }
}

double HeldOutMetric::value(const Loss& all) const {
    if (metric_ == "accuracy") return all.accuracy();
    if (metric_ == "f1")
        return classes_ == 2 ? evaluation::f1_of_class(found_, truth_, 1) : evaluation::f1_macro(found_, truth_);
    if (metric_ == "matthews") return evaluation::matthews(found_, truth_);
    if (metric_ == "spearman") return evaluation::spearman(numbers_, wanted_);
    return all.mean();
}

}  // namespace headscope::training
