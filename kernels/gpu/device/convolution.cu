// SPDX-License-Identifier: GPL-3.0-or-later
// The plugin's entries `convolution` and `convolution_backward`.
#include "kernels/gpu/device/convolution.h"

#include "kernels/gpu/device/entries.h"
#include "kernels/gpu/device/parts.h"

namespace headscope::gpu {
namespace {

std::int64_t row_blocks(std::int64_t items) {
    return (items + kRowThreads - 1) / kRowThreads;
}

}  // namespace

void convolution_entry(const HsConvolution* task, const HsCall* call, HsOutcome* outcome) {
    Launcher(*call, *outcome).run<Convolve>(row_blocks(task->batch * task->length * task->channels), *task);
}

void convolution_backward_entry(const HsConvolution* task, const HsCall* call, HsOutcome* outcome) {
    Launcher launcher(*call, *outcome);
    const HsConvolution& w = *task;
    const std::int64_t items = w.batch * w.length * w.channels;
    const std::int64_t parts = w.batch * ((w.length + HS_SUM_ROWS - 1) / HS_SUM_ROWS);
    launcher.run<ConvolutionSlopes>(row_blocks(items), w);
    if (w.dx != nullptr) launcher.run<ConvolutionInput>(row_blocks(items), w);
    if (w.d_weight == nullptr && w.d_bias == nullptr) return;
    launcher.run<ConvolutionSums>(row_blocks(parts * w.channels * (w.taps + 1)), w);
    const int count = static_cast<int>(parts), channels = static_cast<int>(w.channels);
    sum_parts(launcher, {w.weight_parts, 1, 1, count, channels, w.taps, 0, {w.d_weight, HS_FLOAT32, 0, w.taps}, 0});
    sum_parts(launcher, {w.bias_parts, 1, 1, count, channels, 1, 0, {w.d_bias, HS_FLOAT32, 0, 1}, 0});
}

}  // namespace headscope::gpu
