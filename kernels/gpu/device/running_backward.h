// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Gradients of attention with one score per key (kernels/running.h, running_backward): the sums G and E run backward,
// as the forward ones run forward.

#include "kernels/gpu/device/running.h"

namespace headscope::gpu {

/// e^(c_i - c_j) of the log normalizers, i <= j: at most 1.
HS_DEVICE float between(const Context& c, const HsRunning& r, int head, int i, int j) {
    const long long row = static_cast<long long>(head) * r.length;
    return exponential(c, r.maximum[row + i] - r.maximum[row + j]) * (r.denominator[row + i] / r.denominator[row + j]);
}

/// G and E at each chunk's first token from the chunk's tokens alone, a block a chunk.
struct RunningLater {
    using Args = HsRunningBackward;
    static constexpr int kThreads = kRunningThreads, kShared = 4 * kRunningChunk;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsRunning& r = args.r;
        const int chunks = running_chunks(r.tokens), head = c.block() / chunks, chunk = c.block() % chunks;
        const int first = chunk * kRunningChunk, count = least(kRunningChunk, r.tokens - first), t = c.thread();
        const long long at = static_cast<long long>(head) * chunks + chunk;
        const auto factors = c.shared<float>(0);
        if (t < count) factors[t] = t + 1 < count ? between(c, r, head, first + t, first + t + 1) : 0.0f;
        c.sync();
        for (int x = t; x < r.value_size; x += kThreads) {
            float sum = 0.0f;
            for (int j = count - 1; j >= 0; --j) sum = element(args.gradient, head, first + j, x) + factors[j] * sum;
            args.later[at * r.value_size + x] = sum;
        }
        if (t != kThreads - 1) return;
        float sum = 0.0f;
        for (int j = count - 1; j >= 0; --j)
            sum = args.products[static_cast<long long>(head) * r.length + first + j] + factors[j] * sum;
        args.later_products[at] = sum;
    }
};

/// Sums of chunks become G and E at the next chunk's first token. A block owns 128 columns of a head, E the last one.
struct RunningLaterScan {
    using Args = HsRunningBackward;
    static constexpr int kThreads = kRunningThreads, kShared = 16;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsRunning& r = args.r;
        const int panels = (r.value_size + kThreads) / kThreads, chunks = running_chunks(r.tokens);
        const int head = c.block() / panels, x = c.block() % panels * kThreads + c.thread();
        if (x > r.value_size) return;
        float sum = 0.0f;
        for (int chunk = chunks - 1; chunk >= 0; --chunk) {
            const long long at = static_cast<long long>(head) * chunks + chunk;
            float& place = x < r.value_size ? args.later[at * r.value_size + x] : args.later_products[at];
            const float own = place;
            place = sum;
            const int first = chunk * kRunningChunk, next = first + kRunningChunk;
            sum = next < r.tokens ? own + between(c, r, head, first, next) * sum : own;
        }
    }
};

/// A head's part of the gradients of values, and d loss / d score, a block a chunk; zeros for padding.
struct RunningSlopes {
    using Args = HsRunningBackward;
    static constexpr int kThreads = kRunningThreads, kGroups = kThreads / 16;
    static constexpr int kShared = 4 * (3 + kGroups) * kRunningChunk;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsRunning& r = args.r;
        const int all = running_chunks(r.length), head = c.block() / all, chunk = c.block() % all;
        const int first = chunk * kRunningChunk, last = least(first + kRunningChunk, r.length);
        const int count = most(0, least(kRunningChunk, r.tokens - first)), t = c.thread(), group = t / 16;
        const long long row = static_cast<long long>(head) * r.length + first;
        const long long at = static_cast<long long>(head) * running_chunks(r.tokens) + chunk;
        const auto factors = c.shared<float>(0), diagonal = factors + kRunningChunk,
                   means = factors + 2 * kRunningChunk;
        const auto products = factors + 3 * kRunningChunk;
        if (t < count) {
            factors[t] = first + t + 1 < r.tokens ? between(c, r, head, first + t, first + t + 1) : 0.0f;
            diagonal[t] = exponential(c, r.score[row + t] - r.maximum[row + t]) / r.denominator[row + t];
        }
        for (int x = t; x < kGroups * kRunningChunk; x += kThreads) products[x] = 0.0f;
        c.sync();
        if (t == 0) {
            float sum = count > 0 ? args.later_products[at] : 0.0f;
            for (int j = count - 1; j >= 0; --j) {
                sum = args.products[row + j] + factors[j] * sum;
                means[j] = sum;
            }
        }
        const int panels = (r.value_size + kThreads - 1) / kThreads;
        for (int panel = 0; panel < panels; ++panel) {
            const int x = panel * kThreads + t;
            const bool owns = x < r.value_size;
            float sum = owns && count > 0 ? args.later[at * r.value_size + x] : 0.0f;
            for (int j = count - 1; j >= 0; --j) {
                float product = 0.0f;
                if (owns) {
                    sum = element(args.gradient, head, first + j, x) + factors[j] * sum;
                    product = sum * element(r.value, head / (r.heads / r.key_heads), first + j, x);
                    if (args.value_parts != nullptr) args.value_parts[(row + j) * r.value_size + x] = diagonal[j] * sum;
                }
                product = sum_of_lanes(c, product);
                if (t % 16 == 0) products[group * kRunningChunk + j] = products[group * kRunningChunk + j] + product;
            }
            for (int i = count; owns && args.value_parts != nullptr && first + i < last; ++i)
                args.value_parts[(row + i) * r.value_size + x] = 0.0f;
        }
        c.sync();
        if (t < count) {
            float sum = 0.0f;
            for (int g = 0; g < kGroups; ++g) sum += products[g * kRunningChunk + t];
            args.slopes[row + t] = diagonal[t] * (sum - means[t]);
        } else if (first + t < last) {
            args.slopes[row + t] = 0.0f;
        }
    }
};

/// Gradients of queries, and what a head adds to those of keys, a thread a number.
struct RunningGradients {
    using Args = HsRunningBackward;
    static constexpr int kThreads = kRunningThreads, kShared = 16;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsRunning& r = args.r;
        const long long index = static_cast<long long>(c.block()) * kThreads + c.thread();
        if (index >= static_cast<long long>(r.heads) * r.length * r.key_size) return;
        const int x = static_cast<int>(index % r.key_size);
        const int i = static_cast<int>(index / r.key_size % r.length);
        const int head = static_cast<int>(index / r.key_size / r.length);
        const bool exists = i < r.tokens;
        const float slope = r.scale * args.slopes[static_cast<long long>(head) * r.length + i];
        if (args.query.data != nullptr)
            store(args.query, head, i, x, exists ? slope * element(r.key, head / (r.heads / r.key_heads), i, x) : 0.0f);
        if (args.key_parts != nullptr) args.key_parts[index] = exists ? slope * element(r.query, head, i, x) : 0.0f;
    }
};

}  // namespace headscope::gpu
