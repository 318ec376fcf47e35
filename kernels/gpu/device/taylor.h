// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Taylor weights from a state (kernels/taylor_state.h), in chunks of 64 tokens: earlier tokens are read from the state,
// segment by segment of its rows; those of the chunk are read pair by pair; then the chunk is added to the state. A
// thread owns a value column; the one behind the last value is that of the denominators.

#include "kernels/gpu/device/reduce.h"
#include "kernels/gpu/device/weight.h"

namespace headscope::gpu {

struct TaylorArgs {
    HsTaylor t;
    int first, count;  ///< tokens of the chunk
};

inline constexpr int kPanelColumns = 160, kSegment = HS_TAYLOR_SEGMENT;

HS_BOTH int taylor_panels(const HsTaylor& t) {
    return (t.value_size + kPanelColumns) / kPanelColumns;
}
/// Segments of the rows of the first order, then of the second.
HS_BOTH int first_segments(const HsTaylor& t) {
    return (t.key_size + kSegment - 1) / kSegment;
}
HS_BOTH int taylor_segments(const HsTaylor& t) {
    return first_segments(t) + (t.features - 1 - t.key_size + kSegment - 1) / kSegment;
}

/// The product of a key's, or query's, numbers in row `feature` of the state.
HS_DEVICE float product_of(const HsTaylor& t, const HsMatrix& from, int head, int token, int feature) {
    const int a = t.numbers[2 * feature], b = t.numbers[2 * feature + 1];
    float product = a < 0 ? 1.0f : element(from, head, token, a);
    if (b >= 0) product *= element(from, head, token, b);
    return product;
}

/// The same of a query, with its share of the series.
HS_DEVICE float query_product(const HsTaylor& t, int head, int token, int feature) {
    const int a = t.numbers[2 * feature], b = t.numbers[2 * feature + 1];
    const float scale = b < 0 ? (a < 0 ? 1.0f : t.scale) : t.scale * t.scale * (a == b ? 0.5f : 1.0f);
    return scale * product_of(t, t.query, head, token, feature);
}

/// parts = products of the chunk's queries with one segment of a key head's state.
struct TaylorRead {
    using Args = TaylorArgs;
    static constexpr int kThreads = kPanelColumns, kRows = 8;
    static constexpr int kProducts = kSegment * kPanelColumns, kShared = 4 * (kProducts + kRows * kSegment);

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsTaylor& t = args.t;
        const int panels = taylor_panels(t), segments = taylor_segments(t), columns = t.value_size + 1;
        const int panel = c.block() % panels, segment = c.block() / panels % segments;
        const int key_head = c.block() / panels / segments, group = t.heads / t.key_heads;
        const int firsts = first_segments(t);
        const int begin = segment < firsts ? 1 + segment * kSegment : 1 + t.key_size + (segment - firsts) * kSegment;
        const int end = least(segment < firsts ? 1 + t.key_size : t.features, begin + kSegment);
        const int x = panel * kPanelColumns + c.thread();
        const auto held = c.shared<float>(0), products = held + kProducts;
        for (int p = 0; p < kSegment; ++p) {
            const long long row = static_cast<long long>(key_head) * t.features + begin + p;
            held[p * kPanelColumns + c.thread()] = begin + p < end && x < columns ? t.state[row * columns + x] : 0.0f;
        }
        const int rows = group * args.count;
        for (int from = 0; from < rows; from += kRows) {
            c.sync();
            for (int n = c.thread(); n < kRows * kSegment; n += kThreads) {
                const int row = from + n / kSegment, p = begin + n % kSegment;
                products[n] = row < rows && p < end ? query_product(t, key_head * group + row / args.count,
                                                                    args.first + row % args.count, p)
                                                    : 0.0f;
            }
            c.sync();
            float sums[kRows] = {};
            for (int p = 0; p < kSegment; ++p) {
                const float state = held[p * kPanelColumns + c.thread()];
#pragma unroll
                for (int n = 0; n < kRows; ++n) sums[n] += products[n * kSegment + p] * state;
            }
#pragma unroll
            for (int n = 0; n < kRows; ++n) {
                const int row = from + n;
                if (row >= rows || x >= columns) continue;
                const long long head = key_head * group + row / args.count;
                t.parts[((segment * static_cast<long long>(t.heads) + head) * HS_TAYLOR_CHUNK + row % args.count) *
                            columns +
                        x] = sums[n];
            }
        }
    }
};

/// Outputs of a token of a head: the parts, and the pairs within the chunk.
struct TaylorFinish {
    using Args = TaylorArgs;
    static constexpr int kThreads = 128, kGroups = kThreads / 16;
    static constexpr int kShared = 8 * 3 + 4 * 2 * HS_TAYLOR_CHUNK;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsTaylor& t = args.t;
        const int head = c.block() / args.count, row = c.block() % args.count;
        const int key_head = head / (t.heads / t.key_heads);
        const Normaliser normaliser = static_cast<Normaliser>(t.normaliser);
        const auto denominators = c.shared<double>(0);
        const auto scores = c.shared<float>(24), seconds = scores + HS_TAYLOR_CHUNK;
        for (int from = 0; from <= row; from += kGroups) {
            const int j = from + c.thread() / 16;
            float product = 0.0f, squares = 0.0f;
            for (int x = c.thread() % 16; j <= row && x < t.key_size; x += 16) {
                const float y =
                    element(t.query, head, args.first + row, x) * element(t.key, key_head, args.first + j, x);
                product += y;
                squares += y * y;
            }
            product = t.scale * sum_of_lanes(c, product);
            squares = t.scale * t.scale * sum_of_lanes(c, squares);
            if (c.thread() % 16 != 0 || j > row) continue;
            scores[j] = product;
            seconds[j] = 0.5f * (is_diagonal(normaliser) ? squares : product * product);
        }
        c.sync();
        if (c.thread() < 3) denominators[c.thread()] = sum(args, c, head, key_head, row, c.thread(), t.value_size);
        c.sync();
        const double first = denominators[0], second = denominators[1], third = denominators[2];
        for (int x = c.thread(); x < t.value_size; x += kThreads) {
            double orders[3];
            for (int order = 0; order < 3; ++order) orders[order] = sum(args, c, head, key_head, row, order, x);
            const double result = is_per_order(normaliser)
                                      ? orders[0] / first + orders[1] / second + orders[2] / third
                                      : (orders[0] + orders[1] + orders[2]) / (first + second + third);
            store(t.output, head, args.first + row, x, static_cast<float>(result));
        }
    }

private:
    /// Column x of the sums of one order.
    static HS_DEVICE double sum(const Args& args, const Context& c, int head, int key_head, int row, int order, int x) {
        const HsTaylor& t = args.t;
        const int columns = t.value_size + 1, firsts = first_segments(t);
        const auto scores = c.shared<float>(24), seconds = scores + HS_TAYLOR_CHUNK;
        double total = order == 0
                           ? static_cast<double>(t.state[static_cast<long long>(key_head) * t.features * columns + x])
                           : 0.0;
        const int begin = order == 1 ? 0 : firsts;
        const int end = order == 0 ? begin : order == 1 ? firsts : taylor_segments(t);
        for (int segment = begin; segment < end; ++segment)
            total += static_cast<double>(
                t.parts[((segment * static_cast<long long>(t.heads) + head) * HS_TAYLOR_CHUNK + row) * columns + x]);
        float own = 0.0f;
        for (int j = 0; j <= row; ++j) {
            const float term = order == 0   ? 1.0f
                               : order == 1 ? static_cast<float>(scores[j])
                                            : static_cast<float>(seconds[j]);
            own += term * (x < t.value_size ? element(t.value, key_head, args.first + j, x) : 1.0f);
        }
        return total + static_cast<double>(own);
    }
};

/// Adds the chunk to 64 rows of a key head's state.
struct TaylorAdd {
    using Args = TaylorArgs;
    static constexpr int kThreads = kPanelColumns, kChunk = HS_TAYLOR_CHUNK, kRows = 4;
    static constexpr int kProducts = kChunk * kPanelColumns, kShared = 4 * (kProducts + kSegment * kChunk);
    static_assert(kShared <= 64 << 10);

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsTaylor& t = args.t;
        const int panels = taylor_panels(t), segments = (t.features + kSegment - 1) / kSegment;
        const int panel = c.block() % panels, begin = c.block() / panels % segments * kSegment;
        const int key_head = c.block() / panels / segments, columns = t.value_size + 1;
        const int end = least(t.features, begin + kSegment), x = panel * kPanelColumns + c.thread();
        const auto values = c.shared<float>(0), products = values + kProducts;
        for (int i = 0; i < args.count; ++i)
            values[i * kPanelColumns + c.thread()] = x < t.value_size    ? element(t.value, key_head, args.first + i, x)
                                                     : x == t.value_size ? 1.0f
                                                                         : 0.0f;
        for (int n = c.thread(); n < kSegment * args.count; n += kThreads) {
            const int p = begin + n / args.count, i = n % args.count;
            products[n / args.count * kChunk + i] = p < end ? product_of(t, t.key, key_head, args.first + i, p) : 0.0f;
        }
        c.sync();
        for (int from = begin; from < end; from += kRows) {
            float sums[kRows] = {};
            for (int i = 0; i < args.count; ++i) {
                const float value = values[i * kPanelColumns + c.thread()];
#pragma unroll
                for (int n = 0; n < kRows; ++n) sums[n] += products[(from - begin + n) * kChunk + i] * value;
            }
#pragma unroll
            for (int n = 0; n < kRows; ++n) {
                if (from + n >= end || x >= columns) continue;
                t.state[(static_cast<long long>(key_head) * t.features + from + n) * columns + x] += sums[n];
            }
        }
    }
};

}  // namespace headscope::gpu
