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

/// to [size] = the sum of the parts of RowSums, in float64.
void sum_rows(Launcher& launcher, const RowSums::Args& args, float* to) {
    const std::int64_t parts = pieces_of(args.rows, HS_SUM_ROWS);
    launcher.run<RowSums>(parts * pieces_of(args.size, kRowThreads), args);
    sum_parts(launcher,
              {args.parts, 1, 1, static_cast<int>(parts), 1, args.size, 0, {to, HS_FLOAT32, args.size, args.size}, 0});
}

}  // namespace

void rms_norm_entry(const HsRmsNorm* task, const HsCall* call, HsOutcome* outcome) {
    Launcher(*call, *outcome).run<RmsNormRow>(task->rows, *task);
}

void rms_norm_backward_entry(const HsRmsNorm* task, const HsCall* call, HsOutcome* outcome) {
    Launcher launcher(*call, *outcome);
    launcher.run<RmsNormSlope>(task->rows, *task);
    if (task->d_gain != nullptr)
        sum_rows(launcher, {task->rows, task->size, task->type, task->x, task->dy, task->inverse, task->parts},
                 task->d_gain);
}

void gated_silu_entry(const HsGatedSilu* task, const HsCall* call, HsOutcome* outcome) {
    Launcher(*call, *outcome).run<GatedSilu>(pieces_of(task->rows * task->size, kRowThreads), *task);
}

void column_sums_entry(const HsColumnSums* task, const HsCall* call, HsOutcome* outcome) {
    Launcher launcher(*call, *outcome);
    sum_rows(launcher, {task->rows, task->size, task->type, task->x, nullptr, nullptr, task->parts}, task->sums);
}

void rotate_entry(const HsRotation* task, const HsCall* call, HsOutcome* outcome) {
    const std::int64_t items = task->rows * task->heads * Rotate::items(*task);
    Launcher(*call, *outcome).run<Rotate>(pieces_of(items, kRowThreads), *task);
}

void add_rows_entry(const HsAddRows* task, const HsCall* call, HsOutcome* outcome) {
    Launcher(*call, *outcome).run<AddRows>(task->entries * pieces_of(task->size, kRowThreads), *task);
}

void cross_entropy_entry(const HsCrossEntropy* task, const HsCall* call, HsOutcome* outcome) {
    Launcher(*call, *outcome).run<CrossEntropyRow>(task->rows, *task);
}

}  // namespace headscope::gpu
