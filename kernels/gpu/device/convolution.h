// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Depthwise causal convolution with a few taps (kernels/convolution.h). A thread owns a token's channel; sums over
// tokens go through parts of 64 tokens.

#include "kernels/gpu/device/rows.h"

namespace headscope::gpu {

/// A token and channel of a thread.
struct TokenChannel {
    long long sequence, token, channel;
    bool exists;

    HS_DEVICE TokenChannel(const HsConvolution& w, const Context& c) {
        const long long index = static_cast<long long>(c.block()) * kRowThreads + c.thread();
        channel = index % w.channels;
        token = index / w.channels % w.length;
        sequence = index / w.channels / w.length;
        exists = sequence < w.batch;
    }
};

/// Input of tap j: before the text 0, or `before`.
HS_DEVICE float input_of(const HsConvolution& w, long long sequence, long long token, int tap, long long channel) {
    const long long at = token - w.taps + 1 + tap;
    if (at >= 0) return load_element(w.x, w.type, (sequence * w.length + at) * w.row_stride + channel);
    if (w.before == nullptr) return 0.0f;
    return load_element(w.before, w.type, ((sequence + 1) * (w.taps - 1) + at) * w.channels + channel);
}

HS_DEVICE float convolve(const HsConvolution& w, const TokenChannel& at) {
    float sum = w.bias == nullptr ? 0.0f : load_element(w.bias, w.type, at.channel);
    for (int j = 0; j < w.taps; ++j)
        sum +=
            load_element(w.weight, w.type, at.channel * w.taps + j) * input_of(w, at.sequence, at.token, j, at.channel);
    return sum;
}

struct Convolve {
    using Args = HsConvolution;
    static constexpr int kThreads = kRowThreads, kShared = 16;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const TokenChannel at(args, c);
        if (!at.exists) return;
        const float s = convolve(args, at);
        store_element(args.y, args.type, (at.sequence * args.length + at.token) * args.channels + at.channel,
                      args.plain != 0 ? s : s * sigmoid_of(c, s));
    }
};

/// d loss / d s.
struct ConvolutionSlopes {
    using Args = HsConvolution;
    static constexpr int kThreads = kRowThreads, kShared = 16;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const TokenChannel at(args, c);
        if (!at.exists) return;
        const long long place = (at.sequence * args.length + at.token) * args.channels + at.channel;
        float slope = load_element(args.dy, args.type, place);
        if (args.plain == 0) {
            const float s = convolve(args, at), sigmoid = sigmoid_of(c, s);
            slope *= sigmoid * (s * (1.0f - sigmoid) + 1.0f);
        }
        args.slopes[place] = slope;
    }
};

struct ConvolutionInput {
    using Args = HsConvolution;
    static constexpr int kThreads = kRowThreads, kShared = 16;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const TokenChannel at(args, c);
        if (!at.exists) return;
        float sum = 0.0f;
        for (int j = args.taps - 1; j >= 0 && at.token + args.taps - 1 - j < args.length; --j)
            sum += load_element(args.weight, args.type, at.channel * args.taps + j) *
                   args.slopes[(at.sequence * args.length + at.token + args.taps - 1 - j) * args.channels + at.channel];
        store_element(args.dx, args.type, (at.sequence * args.length + at.token) * args.channels + at.channel, sum);
    }
};

/// Sums of 64 tokens for a channel's taps and bias; a thread owns a channel and a tap, the last one the bias.
struct ConvolutionSums {
    using Args = HsConvolution;
    static constexpr int kThreads = kRowThreads, kShared = 16;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const long long index = static_cast<long long>(c.block()) * kThreads + c.thread();
        const int each = args.taps + 1, tap = static_cast<int>(index / args.channels % each);
        const long long channel = index % args.channels, part = index / args.channels / each;
        const long long bands = (args.length + HS_SUM_ROWS - 1) / HS_SUM_ROWS, sequence = part / bands;
        if (sequence >= args.batch) return;
        const long long begin = part % bands * HS_SUM_ROWS;
        float sum = 0.0f;
        for (long long t = begin; t < begin + HS_SUM_ROWS && t < args.length; ++t) {
            const float slope = args.slopes[(sequence * args.length + t) * args.channels + channel];
            sum += tap == args.taps ? slope : slope * input_of(args, sequence, t, tap, channel);
        }
        if (tap == args.taps)
            args.bias_parts[part * args.channels + channel] = sum;
        else
            args.weight_parts[(part * args.channels + channel) * args.taps + tap] = sum;
    }
};

}  // namespace headscope::gpu
