// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The threshold of sparsemax and entmax from a whole row of scores, a block a row: Newton's steps until nothing
// changes (cpu/attention/normaliser/sparsemax-inl.h, entmax-inl.h).

#include "kernels/gpu/device/reduce.h"
#include "kernels/gpu/device/weight.h"
#include "kernels/summary/row_results.h"

namespace headscope::gpu {

struct SearchArgs {
    HsAttention a;
    float* constant;  ///< [heads, queries] or null
    long long begin;  ///< first block of the launch that wrote the panel
};

struct Search {
    using Args = SearchArgs;
    static constexpr int kThreads = kTileThreads, kShared = 8 * kThreads;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsAttention& a = args.a;
        const int query_blocks = (a.queries + kTile - 1) / kTile;
        const long long index = args.begin + c.block() / kTile;
        const int head = static_cast<int>(index % a.heads);
        const int i = (query_blocks - 1 - static_cast<int>(index / a.heads)) * kTile + c.block() % kTile;
        if (i >= a.queries) return;
        const float* scores = a.panel + static_cast<long long>(c.block()) * a.keys;
        const auto memory = c.shared<double>(0);
        float high = kMasked;
        double number = 0.0;
        for (int j = c.thread(); j < a.keys; j += kThreads) {
            if (scores[j] == kMasked) continue;
            high = most(scores[j], high);
            number += 1.0;
        }
        float maximum = static_cast<float>(maximum_of_block<kThreads>(c, memory, static_cast<double>(high)));
        const double pairs = sum_of_block<kThreads>(c, memory, number);
        const float* sink_logit = a.rule.sink_logits == nullptr ? nullptr : a.rule.sink_logits + head;
        if (sink_logit != nullptr && *sink_logit > maximum) maximum = *sink_logit;
        kernels::RowResult row;
        if (pairs == 0.0)
            row = kernels::summary::finish_threshold(maximum, 0.0, 0.0, 0);
        else if (static_cast<Normaliser>(a.normaliser) == Normaliser::sparsemax)
            row = sparsemax(c, memory, scores, a.keys, maximum, sink_logit);
        else
            row = entmax(c, memory, scores, a.keys, maximum, sink_logit);
        if (c.thread() != 0) return;
        const long long at = static_cast<long long>(head) * a.queries + i;
        a.shift[at] = row.shift;
        a.factor[at] = row.factor;
        if (args.constant != nullptr) args.constant[at] = row.constant;
    }

private:
    static HS_DEVICE kernels::RowResult sparsemax(const Context& c, Shared<double> memory, const float* scores,
                                                  int keys, float maximum, const float* sink_logit) {
        // Below every threshold without a sink: a null pointer would keep the number in local memory.
        const double sink = sink_logit == nullptr ? -static_cast<double>(infinity())
                                                  : static_cast<double>(*sink_logit) - static_cast<double>(maximum);
        double threshold = -kLog2E;
        for (;;) {
            const float bound = static_cast<float>(threshold);
            double sum = 0.0, number = 0.0;
            for (int j = c.thread(); j < keys; j += kThreads) {
                const float v = scores[j] - maximum;
                if (v <= bound) continue;  // a NaN ends in the sum
                sum += static_cast<double>(v);
                number += 1.0;
            }
            sum = sum_of_block<kThreads>(c, memory, sum);
            number = sum_of_block<kThreads>(c, memory, number);
            const double next =
                kernels::summary::sparsemax_step(sum, static_cast<std::int64_t>(number), threshold, &sink);
            if (!(static_cast<float>(next) > bound)) return kernels::summary::finish_threshold(maximum, next, 0.0, 1);
            threshold = next;
        }
    }

    static HS_DEVICE kernels::RowResult entmax(const Context& c, Shared<double> memory, const float* scores, int keys,
                                               float maximum, const float* sink_logit) {
        const double none = -static_cast<double>(infinity());
        const double sink =
            sink_logit == nullptr ? none : static_cast<double>(*sink_logit) - static_cast<double>(maximum);
        float threshold = static_cast<float>(-2.0 * kLog2E);
        for (bool last = false;;) {
            double sum = 0.0, squares = 0.0, number = 0.0;
            float smallest = infinity();
            for (int j = c.thread(); j < keys; j += kThreads) {
                const float v = scores[j] - maximum - threshold;
                if (v <= 0.0f) continue;
                sum += static_cast<double>(v);
                squares += static_cast<double>(v) * static_cast<double>(v);
                number += 1.0;
                smallest = least(v, smallest);
            }
            kernels::EntmaxSums found;
            found.sum = sum_of_block<kThreads>(c, memory, sum);
            found.squares = sum_of_block<kThreads>(c, memory, squares);
            found.count = static_cast<std::int64_t>(sum_of_block<kThreads>(c, memory, number));
            found.least = -static_cast<float>(maximum_of_block<kThreads>(c, memory, -static_cast<double>(smallest)));
            const kernels::EntmaxStep step =
                kernels::summary::entmax_step(found, sink - static_cast<double>(threshold));
            const double next = static_cast<double>(threshold) + step.rise;
            // The last step from afar is exact but for rounding, which one more from there takes out.
            if (last || !(static_cast<float>(next) > threshold))
                return kernels::summary::finish_threshold(maximum, next, 0.0, 1);
            last = step.last;
            threshold = static_cast<float>(next);
        }
    }
};

}  // namespace headscope::gpu
