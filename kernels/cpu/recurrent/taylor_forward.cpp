// SPDX-License-Identifier: GPL-3.0-or-later
// Taylor weights from a state on the processor: a key head of one sequence for each task.
#include "kernels/backend.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/views.h"
#include "kernels/cpu/attention/workspace.h"
#include "kernels/cpu/flush_denormals.h"
#include "kernels/cpu/recurrent/taylor_state.h"
#include "kernels/parallel.h"

namespace headscope::kernels::cpu {

void taylor_forward_cpu(const TaylorInput& input, const MutableView& output, float* state) {
    const TaylorFeatures features = features_of(input.normaliser, input.key.size, input.scale);
    const std::int64_t groups = input.key.heads, group = input.query.heads / groups;
    const std::int64_t state_size = static_cast<std::int64_t>(features.list.size()) * (input.value.size + 1);
    Scratch scratch(taylor_scratch(features, input.key.size, input.value.size, group));
    parallel_for(input.key.batch * groups, [&](std::int64_t index, int worker) {
        check_cancelled(input.cancel);
        const FlushDenormals guard;
        const std::int64_t b = index / groups, g = index % groups;
        TaylorTask task;
        task.features = &features;
        task.query = matrix_of(input.query, b);
        task.key = matrix_of(input.key, b);
        task.value = matrix_of(input.value, b);
        task.head = g * group;
        task.group = group;
        task.key_head = g;
        task.length = input.query.length;
        task.key_size = input.key.size;
        task.value_size = input.value.size;
        task.scale = static_cast<float>(input.scale);
        task.output = target_of(output, b);
        if (state != nullptr) task.state = state + index * state_size;
        task.cancel = input.cancel;
        task.scratch = scratch.of(worker);
        taylor_forward_task(task);
    });
    check_cancelled(input.cancel);
    note_target();
}

}  // namespace headscope::kernels::cpu
