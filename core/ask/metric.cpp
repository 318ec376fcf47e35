// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/metric.h"

#include <algorithm>
#include <array>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>

#include "core/ask/parts.h"
#include "core/base/error.h"
#include "core/model/device.h"
#include "core/model/model.h"
#include "core/store/analysis/analysis_header.h"

namespace headscope::ask {
namespace {

constexpr std::array<std::string_view, kMetricKinds> kNames{"logit_difference", "logit", "log_probability",
                                                            "probability",      "kl",    "loss"};

at::Tensor columns(const at::Tensor& logits, const std::vector<std::int64_t>& tokens) {
    return logits.index_select(1, at::tensor(tokens, at::kLong));
}

/// Tokens that a text of `length` predicts. Throws usage where there is none.
std::int64_t predicted_tokens(std::int64_t length, std::int64_t text = -1) {
    if (length > 1) return length - 1;
    throw Error(ErrorCode::usage, "--metric", "expected texts of at least 2 tokens for loss",
                "found " + std::to_string(length) + (text < 0 ? "" : " in text " + std::to_string(text)));
}

}  // namespace

std::int64_t position_in(std::int64_t position, std::int64_t length, std::int64_t text) {
    const std::int64_t place = position < 0 ? length + position : position;
    if (place >= 0 && place < length) return place;
    throw Error(ErrorCode::usage, "--position",
                "expected a position from " + std::to_string(-length) + " to " + std::to_string(length - 1) +
                    (text < 0 ? "" : " of text " + std::to_string(text)),
                "found " + std::to_string(position));
}

void Metric::check_texts(const std::vector<store::SequenceTokens>& texts) const {
    for (std::int64_t s = 0; s < std::ssize(texts); ++s) {
        const std::int64_t length = std::ssize(texts[static_cast<std::size_t>(s)].predicted().ids);
        if (kind == MetricKind::loss)
            predicted_tokens(length, s);
        else if (!all_positions)
            position_in(position, length, s);
    }
}

std::string_view name(MetricKind kind) {
    return kNames.at(static_cast<std::size_t>(kind));
}

void Metric::check(const model::Model& model) const {
    const auto refuse = [](const char* option, const std::string& expected, const std::string& found) {
        throw Error(ErrorCode::usage, option, "expected " + expected, "found " + found);
    };
    if (!model.has_head() || !model.causal())
        refuse("--metric", "a decoder with a head for the vocabulary", "another model");
    const bool reads_answer = kind != MetricKind::kl && kind != MetricKind::loss;
    if (reads_answer && answer.empty()) refuse("--answer", "tokens for --metric " + std::string(name(kind)), "none");
    if (!reads_answer && !answer.empty()) refuse("--answer", "none for --metric " + std::string(name(kind)), "some");
    const bool reads_against = kind == MetricKind::logit_difference;
    if (reads_against != !against.empty())
        refuse("--against", (reads_against ? "tokens for --metric " : "none for --metric ") + std::string(name(kind)),
               against.empty() ? "none" : "some");
    for (const auto* list : {&answer, &against}) {
        const char* const option = list == &answer ? "--answer" : "--against";
        for (const std::int64_t token : *list) {
            if (token < 0 || token >= model.config().vocabulary)
                refuse(option, "tokens from 0 to " + std::to_string(model.config().vocabulary - 1),
                       std::to_string(token));
            if (std::count(list->begin(), list->end(), token) > 1)
                refuse(option, "each token once", std::to_string(token) + " twice");
        }
    }
}

Measure::Measure(model::Model& model, Metric metric) : model_(&model), metric_(std::move(metric)) {
    metric_.check(model);
}

std::int64_t Measure::only_position(std::int64_t length) const {
    return metric_.all_positions || metric_.kind == MetricKind::loss ? -1 : position_in(metric_.position, length);
}

at::Tensor Measure::rows(const at::Tensor& hidden) const {
    const std::int64_t position = only_position(hidden.size(0));
    return position < 0 ? hidden : hidden.narrow(0, position, 1);
}

at::Tensor Measure::logits(const at::Tensor& hidden) const {
    return model_->logits(rows(hidden)).to(at::kDouble);
}

at::Tensor Measure::recorded(const at::Tensor& ids, const at::Tensor& hidden) const {
    const auto head = [this](const at::Tensor& of) {
        const at::Tensor there = model::on_device(of, model_->device());
        return model::on_processor(stack_of(*model_).head()(there));
    };
    if (metric_.kind != MetricKind::loss) return value(head(rows(hidden[0])).to(at::kDouble));
    const std::int64_t predicted = predicted_tokens(ids.size(1));
    const at::Tensor logs = at::log_softmax(head(hidden[0].narrow(0, 0, predicted)).to(at::kDouble), 1);
    return -logs.gather(1, ids[0].narrow(0, 1, predicted).unsqueeze(1)).mean();
}

at::Tensor Measure::value(const at::Tensor& logits) const {
    switch (metric_.kind) {
        case MetricKind::logit_difference:
            return (columns(logits, metric_.answer).mean(1) - columns(logits, metric_.against).mean(1)).mean();
        case MetricKind::logit:
            return columns(logits, metric_.answer).mean();
        case MetricKind::log_probability:
            return columns(at::log_softmax(logits, 1), metric_.answer).logsumexp(1).mean();
        case MetricKind::probability:
            return columns(at::log_softmax(logits, 1), metric_.answer).exp().sum(1).mean();
        case MetricKind::kl:
            return (reference_.exp() * (reference_ - at::log_softmax(logits, 1))).sum(1).mean();
        case MetricKind::loss:
            break;
    }
    throw Error(ErrorCode::internal, "metric", "expected one of logits", "found loss");
}

void Measure::set_reference(const at::Tensor& hidden) {
    if (needs_reference()) reference_ = at::log_softmax(logits(hidden[0]), 1);
}

std::vector<double> Measure::values(const at::Tensor& ids, const at::Tensor& hidden) const {
    std::vector<double> found;
    if (metric_.kind == MetricKind::loss) {
        model::Batch batch;
        batch.ids = ids;
        const std::int64_t predicted = predicted_tokens(ids.size(1));
        const at::Tensor loss = model_->next_token_loss(batch, hidden).narrow(1, 0, predicted);
        const at::Tensor mean = loss.to(at::kDouble).mean(1);
        for (std::int64_t b = 0; b < ids.size(0); ++b) found.push_back(mean[b].item<double>());
        return found;
    }
    const std::int64_t position = only_position(ids.size(1));
    const at::Tensor read = position < 0 || hidden.size(1) == 1 ? hidden : hidden.narrow(1, position, 1);
    // One product for as many texts as a chunk of logits has room for.
    const std::int64_t texts = read.size(0), each = read.size(1);
    const std::int64_t step = std::max<std::int64_t>(1, model_->logit_rows() / each);
    for (std::int64_t first = 0; first < texts; first += step) {
        const std::int64_t count = std::min(step, texts - first);
        const at::Tensor some = read.narrow(0, first, count).reshape({count * each, read.size(2)});
        const at::Tensor scores = model_->logits(some).to(at::kDouble);
        for (std::int64_t b = 0; b < count; ++b)
            found.push_back(value(scores.narrow(0, b * each, each)).item<double>());
    }
    return found;
}

}  // namespace headscope::ask
