// SPDX-License-Identifier: GPL-3.0-or-later
// The plugin's entries `running_forward` and `running_backward`.
#include "kernels/gpu/device/running_backward.h"

#include "kernels/gpu/device/entries.h"
#include "kernels/gpu/device/parts.h"

namespace headscope::gpu {
namespace {

std::int64_t blocks_of(std::int64_t items, int each) {
    return (items + each - 1) / each;
}

void multiply_rows(Launcher& launcher, const HsRunning& r, const RowProducts::Args& args) {
    launcher.run<RowProducts>(blocks_of(static_cast<std::int64_t>(r.heads) * r.length, RowProducts::kRows), args);
}

}  // namespace

void running_forward_entry(const HsRunningForward* forward, const HsCall* call, HsOutcome* outcome) {
    Launcher launcher(*call, *outcome);
    const HsRunning& r = forward->r;
    const std::int64_t heads = r.heads;
    multiply_rows(
        launcher, r,
        {r.query, r.key, r.heads, 1, r.heads / r.key_heads, r.length, r.tokens, r.key_size, r.scale, r.score});
    launcher.run<RunningSums>(heads * running_chunks(r.tokens), *forward);
    launcher.run<RunningScan>(r.tokens > 0 ? heads * blocks_of(r.value_size, kRunningThreads) : 0, *forward);
    if (forward->held_numerator != nullptr && r.tokens > 0)
        launcher.run<RunningState>(blocks_of(heads, kRunningThreads), *forward);
    launcher.run<RunningOutputs>(heads * running_chunks(r.length), *forward);
}

void running_backward_entry(const HsRunningBackward* backward, const HsCall* call, HsOutcome* outcome) {
    Launcher launcher(*call, *outcome);
    const HsRunningBackward& b = *backward;
    const HsRunning& r = b.r;
    const std::int64_t heads = r.heads;
    const int group = r.heads / r.key_heads;
    multiply_rows(launcher, r,
                  {b.gradient, b.output, r.heads, 1, 1, r.length, r.tokens, r.value_size, 1.0f, b.products});
    launcher.run<RunningLater>(heads * running_chunks(r.tokens), b);
    launcher.run<RunningLaterScan>(r.tokens > 0 ? heads * blocks_of(r.value_size + 1, kRunningThreads) : 0, b);
    launcher.run<RunningSlopes>(heads * running_chunks(r.length), b);
    launcher.run<RunningGradients>(blocks_of(heads * r.length * r.key_size, kRunningThreads), b);
    sum_parts(launcher, {b.key_parts, r.heads, group, 1, r.length, r.key_size, 0, b.key, 0});
    sum_parts(launcher, {b.value_parts, r.heads, group, 1, r.length, r.value_size, 0, b.value, 0});
}

}  // namespace headscope::gpu
