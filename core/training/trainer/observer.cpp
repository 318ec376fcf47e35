// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/observer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/model/generate/generate.h"
#include "core/tokenizer/tokenizer.h"
#include "core/training/job/number_text.h"
#include "core/training/trainer/held_out_metric.h"
#include "core/training/trainer/probe_run.h"

namespace headscope::training {
namespace {

using Clock = std::chrono::steady_clock;

/// At most `most` tokens of each sequence, and of each target.
model::Batch first_tokens(model::Batch batch, std::int64_t most) {
    const auto cut = [most](at::Tensor& tensor, std::vector<std::int64_t>& lengths) {
        if (!tensor.defined() || tensor.size(1) <= most) return;
        tensor = tensor.narrow(1, 0, most).contiguous();
        for (std::int64_t& length : lengths) length = std::min(length, most);
    };
    std::vector<std::int64_t> same;
    cut(batch.features, same);
    cut(batch.ids, batch.lengths);
    cut(batch.target, batch.target_lengths);
    return batch;
}

}  // namespace

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

void Observer::warn(const std::string& text) {
    emit_(Log{LogLevel::warning, s_.state.step, text});
}

/// Loss on the held-out batches, always the same ones. What was found, for people.
std::string Observer::validate() {
    if (!s_.held_out) return "no held-out text";
    const std::string name = loss_words(s_.job.data.objective).name;
    if (std::isfinite(s_.state.validation)) return name + " " + number_text(s_.state.validation);
    const auto start = Clock::now();
    Loss all;
    HeldOutMetric metric(s_.job, *s_.data);
    std::int64_t wanted = s_.job.evaluation.batches * s_.job.training.batch;
    // No window counts twice; a metric other than the loss is of all items.
    if (const std::int64_t epoch = s_.held_out->epoch(); epoch > 0)
        wanted = metric.is_loss() ? std::min(wanted, epoch) : epoch;
    for (std::int64_t first = 0; first < wanted; first += s_.job.training.batch) {
        const data::DataBatch batch = s_.held_out->read(first, std::min(s_.job.training.batch, wanted - first));
        all.add(s_.learner->evaluate(batch));
        metric.add(*s_.learner, batch);
    }
    s_.state.validation = all.mean();
    const double value = metric.value(all);
    s_.state.score = metric.is_loss() ? value : -value;
    Validation event{s_.state.step, all.mean(), all.counted, seconds_since(start)};
    if (has_accuracy(s_.job.data.objective)) event.accuracy = all.accuracy();
    emit_(event);
    if (!std::isfinite(all.mean())) warn("the validation loss is not finite");
    if (!metric.is_loss())
        emit_(Log{
            LogLevel::note, s_.state.step,
            s_.job.evaluation.metric + " " + number_text(value) + " of " + std::to_string(wanted) + " held-out items"});
    return name + " " + number_text(all.mean());
}

void Observer::probe() {
    const data::BatchSource& source = s_.held_out ? *s_.held_out : *s_.source;
    const model::Batch batch =
        first_tokens(s_.learner->read(source.read(0, s_.job.probe.sequences)), s_.job.probe.length);
    ProbeResult result = measure(s_.learner->model().model(), batch, never_);
    result.step = s_.state.step;
    emit_(std::move(result));
}

void Observer::sample() {
    // Encoders have no next token, encoder-decoders need a source, and hashes do not determine words.
    const model::ModelConfig& config = std::as_const(s_.learner->model()).model().config();
    if (!config.causal || config.encoder || config.has_classes() || !config.hashed.is_table()) return;
    try {
        const auto& tokenizer = s_.data->tokenizer();
        std::string prompt = s_.job.sample.prompt;
        std::vector<std::int64_t> ids;
        if (prompt.empty()) {
            const data::BatchSource& source = s_.held_out ? *s_.held_out : *s_.source;
            const auto batch = source.read(0, 1);
            ids.assign(batch.ids.begin(), batch.ids.begin() + std::min<std::int64_t>(16, batch.length / 2));
            prompt = tokenizer.decode(std::vector<std::int32_t>(ids.begin(), ids.end()));
        } else {
            const auto encoding = tokenizer.encode(prompt);
            ids.assign(encoding.ids.begin(), encoding.ids.end());
        }
        model::GenerateOptions options;
        options.tokens = s_.job.sample.tokens;
        options.temperature = s_.job.sample.temperature;
        options.seed = static_cast<std::uint64_t>(s_.job.seed) * 1'000'003U + static_cast<std::uint64_t>(s_.state.step);
        const auto made = model::generate(s_.learner->model().model(), ids, options);
        emit_(SampleText{s_.state.step, prompt, tokenizer.decode(std::vector<std::int32_t>(made.begin(), made.end()))});
    } catch (const Error& error) {
        warn(std::string("no sample: ") + error.what());
    }
}

}  // namespace headscope::training
