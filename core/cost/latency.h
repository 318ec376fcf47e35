// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// How long models take to read a text and to say one more token of it, at growing lengths. Threads: the compute thread.
// Errors: Error (usage for a model that says nothing), Stopped.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/model/model.h"

namespace headscope::cost {

struct LatencyOptions {
    std::vector<std::int64_t> lengths;
    std::int64_t batch = 1;
    std::uint64_t seed = 1;     ///< of the token ids
    std::int64_t warm_ups = 2;  ///< runs that are not counted
    std::int64_t least_runs = 5, most_runs = 30;
    double spread = 0.02;            ///< enough when half the interquartile range is below this share of the median
    double seconds = 20;             ///< or when a model has run so long at a length
    std::int64_t decode_steps = 32;  ///< of a run, of which the median is taken
    const Cancellation* cancellation = nullptr;
};

/// Percentiles of values in seconds; NaN without values.
struct Percentiles {
    double median = 0, p10 = 0, p90 = 0;
};
/// Percentiles by linear interpolation between ranks.
Percentiles percentiles(std::vector<double> values);
/// Half the interquartile range as a share of the median.
double relative_spread(std::vector<double> values);

struct LatencyRow {
    std::int64_t model = 0;   ///< its place in the list
    std::int64_t length = 0;  ///< L
    std::int64_t runs = 0;
    Percentiles prefill;     ///< one pass over L tokens that leaves the cache, logits of the last position
    Percentiles decode;      ///< one token with a cache of L; NaN where the positions end at L
    double peak_bytes = 0;   ///< of tensors beside the weights, during a run
    double cache_bytes = 0;  ///< after L tokens
};

/// A length that a model was not measured at.
struct LeftOut {
    std::int64_t model = 0, length = 0;
    std::string why;
};

struct Latency {
    std::vector<LatencyRow> rows;  ///< lengths ascend, models in their order within each
    std::vector<LeftOut> left_out;
};

/// Models take turns within each repeat. The clock is monotonic and sees forward passes and the last position's logits
/// alone. Lengths beyond a table of positions, and such as would not fit memory by what a shorter one took, are left
/// out.
Latency measure_latency(std::span<const std::shared_ptr<model::Model>> models, const LatencyOptions& options,
                        Progress& progress);

}  // namespace headscope::cost
