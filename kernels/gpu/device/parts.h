// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Sums of what several blocks, and the heads of a group, add to one result, in their order.

#include "kernels/gpu/device/entries.h"
#include "kernels/gpu/device/tile.h"

namespace headscope::gpu {

struct SumPartsArgs {
    const float* parts;  ///< [heads, count, rows, width]; null: zeros
    int heads, group, count, rows, width;
    int fold;     ///< 1: one result for each row, the sum over its width
    HsTarget to;  ///< [heads / group, first + rows, width, or 1]
    int first;
};

struct SumParts {
    using Args = SumPartsArgs;
    static constexpr int kThreads = 128, kShared = 16;

    static HS_BOTH long long results(const Args& args) {
        return static_cast<long long>(args.heads / args.group) * args.rows * (args.fold != 0 ? 1 : args.width);
    }

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const long long index = static_cast<long long>(c.block()) * kThreads + c.thread();
        if (index >= results(args)) return;
        const int width = args.fold != 0 ? 1 : args.width;
        const int column = static_cast<int>(index % width), row = static_cast<int>(index / width % args.rows);
        const int owner = static_cast<int>(index / width / args.rows);
        double sum = 0.0;
        for (int head = owner * args.group; args.parts != nullptr && head < (owner + 1) * args.group; ++head)
            for (int part = 0; part < args.count; ++part) {
                const float* from =
                    args.parts + ((static_cast<long long>(head) * args.count + part) * args.rows + row) * args.width;
                if (args.fold == 0) {
                    sum += static_cast<double>(from[column]);
                    continue;
                }
                for (int x = 0; x < args.width; ++x) sum += static_cast<double>(from[x]);
            }
        store_element(args.to.data, args.to.type,
                      owner * static_cast<long long>(args.to.head_stride) +
                          (args.first + row) * static_cast<long long>(args.to.row_stride) + column,
                      static_cast<float>(sum));
    }
};

inline void sum_parts(Launcher& launcher, const SumPartsArgs& args) {
    if (args.to.data == nullptr) return;
    launcher.run<SumParts>((SumParts::results(args) + SumParts::kThreads - 1) / SumParts::kThreads, args);
}

}  // namespace headscope::gpu
