// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Row and element operators. A block owns a row where a sum runs along it, a thread an element elsewhere; sums over
// rows go through parts of 64 rows.

#include <cmath>

#include "kernels/gpu/device/reduce.h"
#include "kernels/gpu/device/weight.h"

namespace headscope::gpu {

inline constexpr int kRowThreads = 128;

HS_DEVICE float sigmoid_of(const Context& c, float x) {
    return 1.0f / (1.0f + power(c, -x * static_cast<float>(kLog2E)));
}

struct RmsNormRow {
    using Args = HsRmsNorm;
    static constexpr int kThreads = kRowThreads, kShared = 8 * kThreads;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const long long first = static_cast<long long>(c.block()) * args.size;
        float squares = 0.0f;
        for (int x = c.thread(); x < args.size; x += kThreads) {
            const float v = load_element(args.x, args.type, first + x);
            squares += v * v;
        }
        const double mean = sum_of_block<kThreads>(c, c.shared<double>(0), static_cast<double>(squares)) /
                            static_cast<double>(args.size);
        const float r = static_cast<float>(1.0 / sqrt(mean + static_cast<double>(args.epsilon)));
        if (c.thread() == 0 && args.inverse != nullptr) args.inverse[c.block()] = r;
        for (int x = c.thread(); x < args.size; x += kThreads)
            store_element(args.y, args.type, first + x,
                          load_element(args.x, args.type, first + x) * r *
                              (load_element(args.gain, args.type, x) + args.gain_offset));
    }
};

struct RmsNormSlope {
    using Args = HsRmsNorm;
    static constexpr int kThreads = kRowThreads, kShared = 8 * kThreads;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const long long first = static_cast<long long>(c.block()) * args.size;
        const float r = args.inverse[c.block()];
        float products = 0.0f;
        for (int x = c.thread(); x < args.size; x += kThreads)
            products += slope(args, first, x) * load_element(args.x, args.type, first + x);
        const double mean = sum_of_block<kThreads>(c, c.shared<double>(0), static_cast<double>(products)) /
                            static_cast<double>(args.size);
        const float factor = r * r * static_cast<float>(mean);
        for (int x = c.thread(); x < args.size; x += kThreads) {
            float result = r * (slope(args, first, x) - load_element(args.x, args.type, first + x) * factor);
            if (args.addend != nullptr) result += load_element(args.addend, args.type, first + x);
            store_element(args.y, args.type, first + x, result);
        }
    }

private:
    static HS_DEVICE float slope(const Args& args, long long first, int x) {
        return load_element(args.dy, args.type, first + x) * (load_element(args.gain, args.type, x) + args.gain_offset);
    }
};

/// parts [row part, size] = sums over 64 rows of x dy r.
struct RmsNormGain {
    using Args = HsRmsNorm;
    static constexpr int kThreads = kRowThreads, kShared = 16;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const int panels = (args.size + kThreads - 1) / kThreads;
        const int part = c.block() / panels, x = c.block() % panels * kThreads + c.thread();
        if (x >= args.size) return;
        const long long begin = static_cast<long long>(part) * HS_SUM_ROWS;
        float sum = 0.0f;
        for (long long row = begin; row < begin + HS_SUM_ROWS && row < args.rows; ++row)
            sum += load_element(args.dy, args.type, row * args.size + x) *
                   (load_element(args.x, args.type, row * args.size + x) * args.inverse[row]);
        args.parts[static_cast<long long>(part) * args.size + x] = sum;
    }
};

struct GatedSilu {
    using Args = HsGatedSilu;
    static constexpr int kThreads = kRowThreads, kShared = 16;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const long long index = static_cast<long long>(c.block()) * kThreads + c.thread();
        if (index >= args.rows * args.size) return;
        const long long row = index / args.size, gate_at = row * 2 * args.size + index % args.size;
        const long long up_at = gate_at + args.size;
        const float gate = load_element(args.gate_up, args.type, gate_at);
        const float up = load_element(args.gate_up, args.type, up_at);
        const float s = sigmoid_of(c, gate), silu = gate * s;
        if (args.dy == nullptr) {
            store_element(args.y, args.type, index, silu * up);
            return;
        }
        const float g = load_element(args.dy, args.type, index);
        store_element(args.y, args.type, gate_at, g * up * (silu * (1.0f - s) + s));
        store_element(args.y, args.type, up_at, g * silu);
    }
};

/// A thread turns a pair, or copies a number.
struct Rotate {
    using Args = HsRotation;
    static constexpr int kThreads = kRowThreads, kShared = 16;

    static HS_BOTH int items(const Args& args) { return args.size - args.turned / 2; }

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const long long index = static_cast<long long>(c.block()) * kThreads + c.thread();
        const int each = items(args), half = args.turned / 2;
        if (index >= args.rows * args.heads * each) return;
        const int item = static_cast<int>(index % each), head = static_cast<int>(index / each % args.heads);
        const long long row = index / each / args.heads;
        const long long from = row * args.row_stride + static_cast<long long>(head) * args.size;
        const long long to = row * args.y_stride + static_cast<long long>(head) * args.size;
        if (item >= half) {
            const int x = half + item;
            store_element(args.y, args.type, to + x, load_element(args.x, args.type, from + x));
            return;
        }
        const int first = args.interleaved != 0 ? 2 * item : item;
        const int second = args.interleaved != 0 ? first + 1 : item + half;
        const long long line = row % args.positions * half + item;
        const float a = load_element(args.x, args.type, from + first),
                    b = load_element(args.x, args.type, from + second);
        const float cosine = load_element(args.cosine, args.type, line),
                    turn = load_element(args.sine, args.type, line);
        const float sine = args.backward != 0 ? -turn : turn;
        store_element(args.y, args.type, to + first, a * cosine - b * sine);
        store_element(args.y, args.type, to + second, b * cosine + a * sine);
    }
};

/// A block a row.
struct CrossEntropyRow {
    using Args = HsCrossEntropy;
    static constexpr int kThreads = 256, kShared = 8 * kThreads;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const long long first = static_cast<long long>(c.block()) * args.entries;
        const long long target = args.targets[c.block()];
        if (target < 0) {
            if (c.thread() == 0) args.loss[c.block()] = args.normaliser[c.block()] = 0.0;
            for (long long x = c.thread(); args.gradients != 0 && x < args.entries; x += kThreads)
                store_element(args.logits, args.type, first + x, 0.0f);
            return;
        }
        const auto memory = c.shared<double>(0);
        float high = -infinity();
        for (long long x = c.thread(); x < args.entries; x += kThreads)
            high = most(load_element(args.logits, args.type, first + x), high);
        const float maximum = static_cast<float>(maximum_of_block<kThreads>(c, memory, static_cast<double>(high)));
        float sum = 0.0f;
        for (long long x = c.thread(); x < args.entries; x += kThreads) sum += share(args, c, first + x, maximum);
        const double total = sum_of_block<kThreads>(c, memory, static_cast<double>(sum));
        const double normaliser = static_cast<double>(maximum) + log(total);
        if (c.thread() == 0) {
            const float chosen = load_element(args.logits, args.type, first + target);
            args.loss[c.block()] = normaliser - static_cast<double>(chosen);
            args.normaliser[c.block()] = normaliser;
        }
        c.sync();
        if (args.gradients == 0) return;
        const float factor = static_cast<float>((1.0 + 2.0 * args.z_loss * normaliser) / total);
        for (long long x = c.thread(); x < args.entries; x += kThreads) {
            const float p = share(args, c, first + x, maximum) * factor;
            store_element(args.logits, args.type, first + x, x == target ? p - 1.0f : p);
        }
    }

private:
    static HS_DEVICE float share(const Args& args, const Context& c, long long at, float maximum) {
        return power(c, (load_element(args.logits, args.type, at) - maximum) * static_cast<float>(kLog2E));
    }
};

}  // namespace headscope::gpu
