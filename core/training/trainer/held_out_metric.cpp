// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/held_out_metric.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>
#include <span>

#include "core/base/error.h"
#include "core/evaluation/metrics/answer_spans.h"
#include "core/evaluation/metrics/classification.h"
#include "core/model/generate/generate.h"
#include "core/model/heads/text_rows.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::training {
namespace {

constexpr std::int64_t kLongestSpan = 30;  // tokens, as of SQuAD's scripts

/// First and last token; both 0: no answer.
struct HeldOutSpan {
    std::int64_t start = 0, end = 0;
};

/// The pair with the largest sum of logits [tokens, 2], the first of equal ones: the first token twice, or two others.
HeldOutSpan best_span(const float* logits, std::int64_t tokens) {
    HeldOutSpan best;
    float highest = logits[0] + logits[1];
    for (std::int64_t start = 1; start < tokens; ++start) {
        for (std::int64_t end = start; end < std::min(tokens, start + kLongestSpan); ++end) {
            const float sum = logits[2 * start] + logits[2 * end + 1];
            if (sum <= highest) continue;
            highest = sum;
            best = {start, end};
        }
    }
    return best;
}

std::vector<std::int32_t> narrow_ids(std::span<const std::int64_t> ids) {
    std::vector<std::int32_t> narrow;
    for (const std::int64_t id : ids)
        if (id >= 0) narrow.push_back(static_cast<std::int32_t>(id));  // no_target is no token
    return narrow;
}

}  // namespace

HeldOutMetric::HeldOutMetric(const JobFile& job, const data::DataSet& data)
    : metric_(job.evaluation.metric),
      objective_(job.data.objective),
      data_(data),
      longest_(job.data.sequence_length),
      classes_(job.data.objective.classes) {
    if ((metric_ == "exact_match" || metric_ == "f1") && data::kind_of(objective_).spans &&
        data.tokenizer().word_hash() != nullptr)
        throw Error(ErrorCode::unsupported, "evaluation.metric",
                    "expected loss or accuracy of a model that hashes words: hashes have no text", "found " + metric_);
}

void HeldOutMetric::add(Learner& learner, const data::DataBatch& batch) {
    if (is_loss() || metric_ == "accuracy") return;
    const at::NoGradGuard no_gradient;
    model::Model& model = learner.model().model();
    if (data::kind_of(objective_).translates)
        add_translations(model, batch);
    else if (data::kind_of(objective_).spans)
        add_spans(model, learner.read(batch), batch);
    else
        add_classes(model, learner.read(batch), batch);
}

void HeldOutMetric::add_classes(model::Model& model, const model::Batch& read, const data::DataBatch& batch) {
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

void HeldOutMetric::add_spans(model::Model& model, const model::Batch& read, const data::DataBatch& batch) {
    const at::Tensor logits = model.logits(model.forward(read).flatten(0, 1)).to(at::kFloat).contiguous();
    const float* row = logits.const_data_ptr<float>();
    for (std::int64_t i = 0; i < batch.sequences; ++i, row += batch.length * model::kSpanEnds) {
        const auto item = static_cast<std::size_t>(i);
        const auto text = [&](const HeldOutSpan& span) {
            if (span.end == 0) return std::string();
            const auto begin = static_cast<std::size_t>(i * batch.length + span.start);
            const auto count = static_cast<std::size_t>(span.end - span.start + 1);
            return data_.tokenizer().decode(narrow_ids(std::span(batch.ids).subspan(begin, count)), true);
        };
        const HeldOutSpan truth{batch.targets.at(2 * item), batch.targets.at(2 * item + 1)};
        const std::vector<std::string> truths{text(truth)};
        const std::string said = text(best_span(row, batch.lengths.empty() ? batch.length : batch.lengths.at(item)));
        const evaluation::SpanScore score = evaluation::span_score(said, truths);
        scores_ += metric_ == "f1" ? score.f1 : score.exact;
        ++spans_;
    }
}

void HeldOutMetric::add_translations(model::Model& model, const data::DataBatch& batch) {
    model::GenerateOptions options;
    options.tokens = longest_;
    options.end_tokens = {data_.separator()};
    const tokenizer::Tokenizer& target = data_.tokenizer().of_target();
    for (std::int64_t i = 0; i < batch.sequences; ++i) {
        const auto item = static_cast<std::size_t>(i);
        const std::int64_t tokens = batch.lengths.empty() ? batch.length : batch.lengths.at(item);
        const auto source = std::span(batch.ids).subspan(item * static_cast<std::size_t>(batch.length),
                                                         static_cast<std::size_t>(tokens));
        const auto wanted = std::span(batch.targets)
                                .subspan(item * static_cast<std::size_t>(batch.target_length),
                                         static_cast<std::size_t>(batch.target_length));
        bleu_.add(target.answer(narrow_ids(model::generate(model, source, options))),
                  target.answer(narrow_ids(wanted)));
    }
}

double HeldOutMetric::value(const Loss& all) const {
    if (metric_ == "accuracy") return all.accuracy();
    if (metric_ == "bleu") return bleu_.score();
    if (data::kind_of(objective_).spans && !is_loss()) return spans_ > 0 ? scores_ / static_cast<double>(spans_) : 0.0;
    if (metric_ == "f1")
        return classes_ == 2 ? evaluation::f1_of_class(found_, truth_, 1) : evaluation::f1_macro(found_, truth_);
    if (metric_ == "matthews") return evaluation::matthews(found_, truth_);
    if (metric_ == "spearman") return evaluation::spearman(numbers_, wanted_);
    return all.mean();
}

}  // namespace headscope::training
