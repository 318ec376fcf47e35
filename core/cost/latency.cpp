// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/latency.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "core/base/error.h"
#include "core/base/machine/memory_room.h"
#include "core/base/splitmix64.h"
#include "core/cost/work_meter.h"
#include "core/model/towers/cache.h"

namespace headscope::cost {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The value below which lies that share of sorted ones.
double quantile(const std::vector<double>& sorted, double share) {
    if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
    const double place = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

at::Tensor random_tokens(std::int64_t batch, std::int64_t length, std::int64_t vocabulary, std::uint64_t seed) {
    at::Tensor ids = at::empty({batch, length}, at::kLong);
    auto* id = ids.mutable_data_ptr<std::int64_t>();
    const std::uint64_t key = splitmix64(seed + 1);
    for (std::int64_t i = 0; i < batch * length; ++i)
        id[i] = static_cast<std::int64_t>(splitmix64(key + static_cast<std::uint64_t>(i)) %
                                          static_cast<std::uint64_t>(vocabulary));
    return ids;
}

/// Tokens that still have a position after `length` tokens.
std::int64_t room_behind(const model::ModelConfig& config, std::int64_t length) {
    const bool endless = config.max_positions == 0 || !config.positions_are_a_table;
    return endless ? std::numeric_limits<std::int64_t>::max() : config.max_positions - length;
}

/// A model at a length.
class Subject {
public:
    Subject(model::Model& model, std::int64_t index, std::int64_t length, const LatencyOptions& options)
        : model_(model),
          options_(options),
          steps_(std::min(options.decode_steps, room_behind(model.config(), length))) {
        row.model = index;
        row.length = length;
        prompt_ = random_tokens(options.batch, length, model.config().vocabulary, options.seed);
        for (std::int64_t step = 0; step < steps_; ++step)
            next_.push_back(random_tokens(options.batch, 1, model.config().vocabulary,
                                          options.seed + static_cast<std::uint64_t>(step) + 1));
    }

    void warm_up() {
        const WorkMeter meter;
        run(false);
        row.peak_bytes = std::max(row.peak_bytes, static_cast<double>(meter.peak_bytes()));
    }
    void repeat() {
        const auto start = Clock::now();
        run(true);
        spent_ += seconds_since(start);
        ++row.runs;
    }
    bool done() const {
        if (row.runs < options_.least_runs) return false;
        if (row.runs >= options_.most_runs || spent_ >= options_.seconds) return true;
        return relative_spread(prefill_) < options_.spread &&
               (decode_.empty() || relative_spread(decode_) < options_.spread);
    }
    LatencyRow finished() {
        row.prefill = percentiles(prefill_);
        row.decode = percentiles(decode_);
        return row;
    }

    LatencyRow row;

private:
    double timed(const at::Tensor& ids, model::ForwardOptions& forward) {
        model::Batch batch;
        batch.ids = ids;
        const auto start = Clock::now();
        const at::Tensor hidden = model_.forward(batch, forward);
        model_.logits(hidden.select(1, hidden.size(1) - 1));
        return seconds_since(start);
    }
    void run(bool counts) {
        const auto cache = model_.new_cache();
        model::ForwardOptions forward;
        forward.cache = cache.get();
        forward.cancellation = options_.cancellation;
        forward.beyond_positions = true;  // a table of positions was looked at before
        const double read = timed(prompt_, forward);
        row.cache_bytes = static_cast<double>(cache->bytes());
        std::vector<double> steps;
        for (const at::Tensor& ids : next_) steps.push_back(timed(ids, forward));
        if (!counts) return;
        prefill_.push_back(read);
        if (!steps.empty()) decode_.push_back(percentiles(std::move(steps)).median);
    }

    model::Model& model_;
    const LatencyOptions& options_;
    std::int64_t steps_;
    at::Tensor prompt_;
    std::vector<at::Tensor> next_;
    std::vector<double> prefill_, decode_;
    double spent_ = 0;
};

}  // namespace

Percentiles percentiles(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return {quantile(values, 0.5), quantile(values, 0.1), quantile(values, 0.9)};
}

double relative_spread(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return (quantile(values, 0.75) - quantile(values, 0.25)) / 2 / quantile(values, 0.5);
}

Latency measure_latency(std::span<const std::shared_ptr<model::Model>> models, const LatencyOptions& options,
                        Progress& progress) {
    for (const auto& model : models) {
        if (!model->causal() || model->config().encoder)
            throw Error(ErrorCode::usage, "cost --latency", "expected a decoder", "found " + model->config().family);
        if (!model->has_head())
            throw Error(ErrorCode::usage, "cost --latency", "expected a model with a head for the vocabulary",
                        "found none in the file");
    }
    try {
        Latency latency;
        std::vector<std::int64_t> lengths = options.lengths;
        std::sort(lengths.begin(), lengths.end());
        lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
        /// Memory of each model at the last length, in bytes per token.
        std::vector<double> bytes_per_token(models.size(), 0);
        double done = 0;
        for (const std::int64_t length : lengths) {
            const std::string what = "latency at " + std::to_string(length);
            progress.advance(done++, static_cast<double>(lengths.size()), what);
            std::vector<Subject> subjects;
            for (std::size_t m = 0; m < models.size(); ++m) {
                const auto index = static_cast<std::int64_t>(m);
                const auto& config = models[m]->config();
                const double needed = bytes_per_token[m] * static_cast<double>(length), room = memory_room();
                if (room_behind(config, length) < 0)
                    latency.left_out.push_back(
                        {index, length, "its table has " + std::to_string(config.max_positions) + " positions"});
                else if (room > 0 && needed > room)
                    latency.left_out.push_back({index, length, "it would take more memory than there is"});
                else
                    subjects.emplace_back(*models[m], index, length, options);
            }
            for (std::int64_t i = 0; i < options.warm_ups; ++i)
                for (Subject& subject : subjects) subject.warm_up();
            for (bool all = false; !all;) {
                all = true;
                for (Subject& subject : subjects) {
                    if (options.cancellation) options.cancellation->check();
                    if (subject.done()) continue;
                    subject.repeat();
                    all = false;
                }
            }
            for (Subject& subject : subjects) {
                const LatencyRow row = subject.finished();
                bytes_per_token[static_cast<std::size_t>(row.model)] =
                    row.peak_bytes / static_cast<double>(std::max<std::int64_t>(1, length));
                latency.rows.push_back(row);
            }
        }
        return latency;
    } catch (...) {
        throw current_error("cost");
    }
}

}  // namespace headscope::cost
