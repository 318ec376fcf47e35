// SPDX-License-Identifier: GPL-3.0-or-later
// Checks, then the backend that kernels/backend.h has chosen, a key head for each task.
#include "kernels/taylor_state.h"

#include "kernels/backend.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/flush_denormals.h"
#include "kernels/cpu/taylor_state.h"
#include "kernels/cpu/views.h"
#include "kernels/cpu/workspace.h"
#include "kernels/dispatch.h"
#include "kernels/normaliser.h"
#include "kernels/parallel.h"
#include "kernels/reference/taylor_state.h"
#include "kernels/score_rule.h"

namespace headscope::kernels {
namespace {

void check(const TaylorInput& input, const MutableView& output) {
    ScoreRule rule;
    rule.scale = input.scale;
    rule.normaliser = input.normaliser;
    check_attention({input.query, input.key, input.value, &rule, nullptr});
    if (!is_known(input.normaliser) || !is_taylor(input.normaliser))
        throw Error("normaliser", "Taylor weights", normaliser_name(input.normaliser));
    if (input.key.length != input.query.length) throw Error("key", "as many as queries", "another number");
    if (output.data == nullptr) throw Error("output", "a place for it", "null");
}

void check_cancelled(const TaylorInput& input) {
    if (input.cancel != nullptr && input.cancel->load(std::memory_order_relaxed)) throw Cancelled();
}

}  // namespace

std::int64_t taylor_features(Normaliser normaliser, std::int64_t key_size) {
    return 1 + key_size + (traits_of(normaliser).diagonal ? key_size : key_size * (key_size + 1) / 2);
}

bool taylor_prefers_state(Normaliser normaliser, std::int64_t length, std::int64_t heads, std::int64_t key_heads,
                          std::int64_t key_size, std::int64_t value_size) {
    const auto number = [](std::int64_t x) { return static_cast<double>(x); };
    // A token's products: with half of all keys in the mean; with the state, once for each query and once to add.
    const double of_pair = number(key_size) * (traits_of(normaliser).diagonal ? 2.0 : 1.0) + number(value_size);
    const double pairs = 0.5 * number(length) * of_pair;
    const double within = 0.5 * number(cpu::kTaylorChunk) * of_pair;
    const double share = 1.0 + number(key_heads) / number(heads);
    return pairs > within + number(taylor_features(normaliser, key_size)) * number(value_size + 1) * share;
}

void taylor_forward(const TaylorInput& input, const MutableView& output, float* state) {
    check(input, output);
    if (chosen_backend() == Backend::reference) {
        taylor_forward_reference(input, output, state);
        note_backend("reference");
        return;
    }
    const cpu::TaylorFeatures features = cpu::features_of(input.normaliser, input.key.size, input.scale);
    const std::int64_t groups = input.key.heads, group = input.query.heads / groups;
    const std::int64_t state_size = static_cast<std::int64_t>(features.list.size()) * (input.value.size + 1);
    const std::int64_t floats = cpu::taylor_scratch(features, input.key.size, input.value.size, group);
    std::vector<cpu::AlignedFloats> scratch(static_cast<std::size_t>(threads()));
    parallel_for(input.key.batch * groups, [&](std::int64_t index, int worker) {
        check_cancelled(input);
        const cpu::FlushDenormals guard;
        cpu::AlignedFloats& own = scratch[static_cast<std::size_t>(worker)];
        if (own.data() == nullptr) own = cpu::AlignedFloats(floats);
        const std::int64_t b = index / groups, g = index % groups;
        cpu::TaylorTask task;
        task.features = &features;
        task.query = cpu::matrix_of(input.query, b);
        task.key = cpu::matrix_of(input.key, b);
        task.value = cpu::matrix_of(input.value, b);
        task.head = g * group;
        task.group = group;
        task.key_head = g;
        task.length = input.query.length;
        task.key_size = input.key.size;
        task.value_size = input.value.size;
        task.scale = static_cast<float>(input.scale);
        task.output = cpu::target_of(output, b);
        if (state != nullptr) task.state = state + index * state_size;
        task.cancel = input.cancel;
        task.scratch = own.data();
        cpu::taylor_forward_task(task);
    });
    check_cancelled(input);
    cpu::note_target();
    note_backend(cpu::last_target());
}

}  // namespace headscope::kernels
