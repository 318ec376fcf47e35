// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Attention with one score per key, in chunks of 64 tokens: sums of each chunk, sums of all chunks before it, then the
// tokens of the chunk one after the other. A thread owns a value column.

#include <cmath>

#include "kernels/gpu/device/reduce.h"
#include "kernels/gpu/device/weight.h"

namespace headscope::gpu {

inline constexpr int kRunningThreads = 128, kRunningChunk = HS_RUNNING_CHUNK;

HS_BOTH int running_chunks(int tokens) {
    return (tokens + kRunningChunk - 1) / kRunningChunk;
}
HS_DEVICE float exponential(const Context& c, float x) {
    return power(c, x * static_cast<float>(kLog2E));
}
/// The larger one; NaN if either is.
HS_DEVICE float raise(float most_so_far, float x) {
    return x <= most_so_far ? most_so_far : x;
}

/// out [heads, length] = scale a_i . b_i, 0 for padding. 16 lanes a row.
struct RowProducts {
    struct Args {
        HsMatrix a, b;
        int heads, group_a, group_b;  ///< head h reads head h / group
        int length, tokens, size;
        float scale;
        float* out;
    };
    static constexpr int kThreads = kRunningThreads, kRows = kThreads / 16, kShared = 16;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const long long index = static_cast<long long>(c.block()) * kRows + c.thread() / 16;
        const bool exists = index < static_cast<long long>(args.heads) * args.length;
        const int head = exists ? static_cast<int>(index / args.length) : 0;
        const int i = exists ? static_cast<int>(index % args.length) : 0;
        float sum = 0.0f;
        for (int x = c.thread() % 16; exists && i < args.tokens && x < args.size; x += 16)
            sum += element(args.a, head / args.group_a, i, x) * element(args.b, head / args.group_b, i, x);
        sum = sum_of_lanes(c, sum);
        if (exists && c.thread() % 16 == 0) args.out[index] = i < args.tokens ? args.scale * sum : 0.0f;
    }
};

/// Maximum, denominator and numerators of the tokens of one chunk, a block each.
struct RunningSums {
    using Args = HsRunningForward;
    static constexpr int kThreads = kRunningThreads, kShared = 4 * kRunningChunk;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsRunning& r = args.r;
        const int chunks = running_chunks(r.tokens), head = c.block() / chunks, chunk = c.block() % chunks;
        const int first = chunk * kRunningChunk, count = least(kRunningChunk, r.tokens - first);
        const float* scores = r.score + static_cast<long long>(head) * r.length + first;
        const auto weights = c.shared<float>(0);
        float maximum = scores[0];
        for (int j = 1; j < count; ++j) maximum = raise(maximum, scores[j]);
        if (c.thread() < count) weights[c.thread()] = exponential(c, scores[c.thread()] - maximum);
        c.sync();
        const long long at = static_cast<long long>(head) * chunks + chunk;
        if (c.thread() == 0) {
            double sum = 0.0;
            for (int j = 0; j < count; ++j) sum += static_cast<double>(weights[j]);
            args.chunk_maximum[at] = maximum;
            args.chunk_denominator[at] = sum;
        }
        for (int x = c.thread(); x < r.value_size; x += kThreads) {
            float sum = 0.0f;
            for (int j = 0; j < count; ++j)
                sum += weights[j] * element(r.value, head / (r.heads / r.key_heads), first + j, x);
            args.numerators[at * r.value_size + x] = sum;
        }
    }
};

/// Sums of chunks become those of all earlier tokens; the last ones go to the state. A block owns 128 columns of a
/// head.
struct RunningScan {
    using Args = HsRunningForward;
    static constexpr int kThreads = kRunningThreads, kShared = 16;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsRunning& r = args.r;
        const int panels = (r.value_size + kThreads - 1) / kThreads, chunks = running_chunks(r.tokens);
        const int head = c.block() / panels, x = c.block() % panels * kThreads + c.thread();
        const bool held = args.held_numerator != nullptr, owns = x < r.value_size;
        const long long place_of_head = static_cast<long long>(head) * r.value_size + x;
        float maximum = held ? args.held_maximum[head] : -infinity();
        double denominator = held ? static_cast<double>(args.held_denominator[head]) : 0.0;
        float sum = held && owns ? args.held_numerator[place_of_head] : 0.0f;
        for (int chunk = 0; chunk < chunks; ++chunk) {
            const long long at = static_cast<long long>(head) * chunks + chunk;
            if (x == 0) {
                args.earlier_maximum[at] = maximum;
                args.earlier_denominator[at] = denominator;
            }
            const float next = raise(maximum, args.chunk_maximum[at]);
            const float shrink = denominator == 0.0 ? 0.0f : exponential(c, maximum - next);
            const float own = exponential(c, args.chunk_maximum[at] - next);
            denominator =
                denominator * static_cast<double>(shrink) + static_cast<double>(own) * args.chunk_denominator[at];
            maximum = next;
            if (!owns) continue;
            float& place = args.numerators[at * r.value_size + x];
            const float added = own * place;
            place = sum;
            sum = sum * shrink + added;
        }
        if (held && owns) args.held_numerator[place_of_head] = sum;
    }
};

/// The last maximum and denominator of each head, a thread each: RunningScan's blocks read the old ones.
struct RunningState {
    using Args = HsRunningForward;
    static constexpr int kThreads = kRunningThreads, kShared = 16;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsRunning& r = args.r;
        const long long head = static_cast<long long>(c.block()) * kThreads + c.thread();
        if (head >= r.heads) return;
        const int chunks = running_chunks(r.tokens);
        const long long at = head * chunks + chunks - 1;
        const float before = args.earlier_maximum[at], next = raise(before, args.chunk_maximum[at]);
        const double denominator = args.earlier_denominator[at];
        const float shrink = denominator == 0.0 ? 0.0f : exponential(c, before - next);
        const float own = exponential(c, args.chunk_maximum[at] - next);
        args.held_maximum[head] = next;
        args.held_denominator[head] = static_cast<float>(denominator * static_cast<double>(shrink) +
                                                         static_cast<double>(own) * args.chunk_denominator[at]);
    }
};

/// Outputs and rows of one chunk, a block each; zeros for padding.
struct RunningOutputs {
    using Args = HsRunningForward;
    static constexpr int kThreads = kRunningThreads, kShared = 4 * 5 * kRunningChunk;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsRunning& r = args.r;
        const int all = running_chunks(r.length), head = c.block() / all, chunk = c.block() % all;
        const int first = chunk * kRunningChunk, last = least(first + kRunningChunk, r.length);
        const int count = most(0, least(kRunningChunk, r.tokens - first)), t = c.thread();
        const long long row = static_cast<long long>(head) * r.length + first;
        const long long at = static_cast<long long>(head) * running_chunks(r.tokens) + chunk;
        const auto maxima = c.shared<float>(0), shrinks = maxima + kRunningChunk, weights = maxima + 2 * kRunningChunk;
        const auto inverses = maxima + 3 * kRunningChunk, denominators = maxima + 4 * kRunningChunk;
        if (t < count) {
            float maximum = args.earlier_maximum[at];
            for (int j = 0; j <= t; ++j) maximum = raise(maximum, r.score[row + j]);
            maxima[t] = maximum;
        }
        c.sync();
        if (t < count) {
            const float before = t == 0 ? args.earlier_maximum[at] : static_cast<float>(maxima[t - 1]);
            const float own = maxima[t];
            const bool empty = t == 0 && args.earlier_denominator[at] == 0.0;
            shrinks[t] = empty ? 0.0f : exponential(c, before - own);
            weights[t] = exponential(c, r.score[row + t] - own);
        }
        c.sync();
        if (t == 0 && count > 0) {
            double sum = args.earlier_denominator[at];
            for (int j = 0; j < count; ++j) {
                sum = sum * static_cast<double>(shrinks[j]) + static_cast<double>(weights[j]);
                denominators[j] = static_cast<float>(sum);
                inverses[j] = static_cast<float>(1.0 / sum);
            }
        }
        c.sync();
        if (t < count) {
            r.maximum[row + t] = maxima[t];
            r.denominator[row + t] = denominators[t];
        } else if (first + t < last) {
            r.maximum[row + t] = 0.0f;
            r.denominator[row + t] = 1.0f;
        }
        for (int x = t; x < r.value_size; x += kThreads) {
            float sum = count > 0 ? args.numerators[at * r.value_size + x] : 0.0f;
            for (int j = 0; j < count; ++j) {
                sum = sum * shrinks[j] + weights[j] * element(r.value, head / (r.heads / r.key_heads), first + j, x);
                store(args.output, head, first + j, x, sum * inverses[j]);
            }
            for (int i = first + count; i < last; ++i) store(args.output, head, i, x, 0.0f);
        }
    }
};

}  // namespace headscope::gpu
