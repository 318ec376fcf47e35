// SPDX-License-Identifier: GPL-3.0-or-later
// The plugin's entries `adamw` and `squared_norm`: the arithmetic of kernels/cpu/dense/optimizer.cpp, with its fused
// multiplications.
#include <cmath>

#include "kernels/gpu/device/entries.h"
#include "kernels/gpu/device/reduce.h"

namespace headscope::gpu {
namespace {

struct AdamW {
    using Args = HsAdamW;
    static constexpr int kThreads = 256, kShared = 16;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const long long at = static_cast<long long>(c.block()) * kThreads + c.thread();
        if (at >= args.size) return;
        float* weights = args.type == HS_FLOAT32 ? static_cast<float*>(args.weights) : args.master;
        const float g = load_element(args.gradients, args.gradient_type, at) * args.gradient_scale;
        const float m = fmaf(args.first[at], args.keep_first, g * args.add_first);
        const float v = fmaf(args.second[at], args.keep_second, g * g * args.add_second);
        args.first[at] = m;
        args.second[at] = v;
        const float denominator = fmaf(sqrtf(v), args.second_scale, args.epsilon);
        const float kept = weights[at] * (at < args.decayed ? args.shrink : 1.0f);
        const float w = fmaf(-args.step, m / denominator, kept);
        weights[at] = w;
        if (args.type != HS_FLOAT32) store_element(args.weights, args.type, at, w);
        if (args.clear != 0) store_element(args.gradients, args.gradient_type, at, 0.0f);
    }
};

/// The sum of one piece, a block each.
struct SquaredNorm {
    using Args = HsSquaredNorm;
    static constexpr int kThreads = 256, kShared = 8 * kThreads;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const long long begin = static_cast<long long>(c.block()) * HS_NORM_PIECE;
        const long long end = begin + HS_NORM_PIECE < args.size ? begin + HS_NORM_PIECE : args.size;
        double sum = 0.0;
        for (long long x = begin + c.thread(); x < end; x += kThreads) {
            const double v = static_cast<double>(load_element(args.values, args.type, x));
            sum += v * v;
        }
        sum = sum_of_block<kThreads>(c, c.shared<double>(0), sum);
        if (c.thread() == 0) args.sums[c.block()] = sum;
    }
};

}  // namespace

void adamw_entry(const HsAdamW* task, const HsCall* call, HsOutcome* outcome) {
    Launcher(*call, *outcome).run<AdamW>((task->size + AdamW::kThreads - 1) / AdamW::kThreads, *task);
}

void squared_norm_entry(const HsSquaredNorm* task, const HsCall* call, HsOutcome* outcome) {
    Launcher(*call, *outcome).run<SquaredNorm>((task->size + HS_NORM_PIECE - 1) / HS_NORM_PIECE, *task);
}

}  // namespace headscope::gpu
