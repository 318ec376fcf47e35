// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/observer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/base/error.h"
#include "core/model/generate.h"
#include "core/tokenizer/tokenizer.h"
#include "core/training/job/number_text.h"
#include "core/training/trainer/probe_run.h"

namespace headscope::training {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

void Observer::warn(const std::string& text) {
    emit_(Log{LogLevel::warning, s_.state.step, text});
}

/// Loss on the held-out batches, always the same ones. What was found, for people.
std::string Observer::validate() {
    if (!s_.held_out) return "no held-out text";
    if (std::isfinite(s_.state.validation)) return "loss " + number_text(s_.state.validation);
    const auto start = Clock::now();
    Loss all;
    std::int64_t wanted = s_.job.evaluation.batches * s_.job.training.batch;
    if (s_.held_out->epoch() > 0) wanted = std::min(wanted, s_.held_out->epoch());  // no window counts twice
    for (std::int64_t first = 0; first < wanted; first += s_.job.training.batch) {
        const Loss one =
            s_.learner->evaluate(s_.held_out->read(first, std::min(s_.job.training.batch, wanted - first)));
        all.sum += one.sum;
        all.counted += one.counted;
    }
    s_.state.validation = all.mean();
    emit_(Validation{s_.state.step, all.mean(), all.counted, seconds_since(start)});
    if (!std::isfinite(all.mean())) warn("the validation loss is not finite");
    return "loss " + number_text(all.mean());
}

void Observer::probe() {
    const data::BatchSource& source = s_.held_out ? *s_.held_out : *s_.source;
    const data::DataBatch batch = source.read(0, s_.job.probe.sequences);
    const std::int64_t length = std::min(s_.job.probe.length, batch.length);
    ProbeResult result = measure(s_.learner->model().model(), ids_of(batch).narrow(1, 0, length).contiguous(), never_);
    result.step = s_.state.step;
    emit_(std::move(result));
}

void Observer::sample() {
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
