// SPDX-License-Identifier: GPL-3.0-or-later
// The plugin's entries of row operators.
#include "kernels/gpu/device/rows.h"

#include "kernels/gpu/device/entries.h"
#include "kernels/gpu/device/parts.h"

namespace headscope::gpu {
namespace {

std::int64_t pieces_of(std::int64_t items, std::int64_t each) {
    return (items + each - 1) / each;
}

}  // namespace

void rms_norm_entry(const HsRmsNorm* task, const HsCall* call, HsOutcome* outcome) {
    Launcher(*call, *outcome).run<RmsNormRow>(task->rows, *task);
}

void rms_norm_backward_entry(const HsRmsNorm* task, const HsCall* call, HsOutcome* outcome) {
    Launcher launcher(*call, *outcome);
    launcher.run<RmsNormSlope>(task->rows, *task);
    if (task->d_gain == nullptr) return;
    const std::int64_t parts = pieces_of(task->rows, HS_SUM_ROWS);
    launcher.run<RmsNormGain>(parts * pieces_of(task->size, kRowThreads), *task);
    const HsTarget gain{task->d_gain, HS_FLOAT32, task->size, task->size};
    sum_parts(launcher, {task->parts, 1, 1, static_cast<int>(parts), 1, task->size, 0, gain, 0});
}

void gated_silu_entry(const HsGatedSilu* task, const HsCall* call, HsOutcome* outcome) {
    Launcher(*call, *outcome).run<GatedSilu>(pieces_of(task->rows * task->size, kRowThreads), *task);
}

void rotate_entry(const HsRotation* task, const HsCall* call, HsOutcome* outcome) {
    const std::int64_t items = task->rows * task->heads * Rotate::items(*task);
    Launcher(*call, *outcome).run<Rotate>(pieces_of(items, kRowThreads), *task);
}

void cross_entropy_entry(const HsCrossEntropy* task, const HsCall* call, HsOutcome* outcome) {
    Launcher(*call, *outcome).run<CrossEntropyRow>(task->rows, *task);
}

}  // namespace headscope::gpu
