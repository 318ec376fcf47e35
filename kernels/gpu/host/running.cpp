// SPDX-License-Identifier: GPL-3.0-or-later
// Attention with one score per key on a GPU, one call of the plugin for each sequence.
#include "kernels/running.h"

#include "kernels/backend.h"
#include "kernels/gpu/host/sequence.h"
#include "kernels/gpu/operators.h"

namespace headscope::kernels {
namespace gpu {
namespace {

std::int32_t whole(std::int64_t x) {
    return static_cast<std::int32_t>(x);  // check_attention() has refused larger ones
}

HsRunning upload_running(Memory& memory, const RunningInput& input, std::int64_t b) {
    HsRunning r{};
    r.query = upload(memory, input.query, b);
    r.key = upload(memory, input.key, b);
    r.value = upload(memory, input.value, b);
    r.heads = whole(input.query.heads);
    r.key_heads = whole(input.key.heads);
    r.length = whole(input.query.length);
    r.tokens = input.lengths.empty() ? r.length : whole(input.lengths[static_cast<std::size_t>(b)]);
    r.key_size = whole(input.key.size);
    r.value_size = whole(input.value.size);
    r.scale = static_cast<float>(input.scale);
    return r;
}

std::int64_t chunks_of(const HsRunning& r) {
    return (std::int64_t{r.tokens} + HS_RUNNING_CHUNK - 1) / HS_RUNNING_CHUNK;
}

float* sequence_of(float* all, std::int64_t b, std::int64_t count) {
    return all == nullptr ? nullptr : all + b * count;
}

}  // namespace
}  // namespace gpu

void running_forward_gpu(const RunningInput& input, const MutableView& output, const RunningRows& rows,
                         const RunningState& state) {
    constexpr const char* where = "running attention forward";
    const HsPlugin& library = gpu::plugin(where);
    if (library.running_forward == nullptr) gpu::refuse(where);
    const Device device = input.query.device;
    const std::int64_t heads = input.query.heads, count = heads * input.query.length, size = input.value.size;
    using Use = gpu::Numbers::Use;
    for (std::int64_t b = 0; b < input.query.batch; ++b) {
        gpu::Memory memory(library, where);
        HsRunningForward task{};
        task.r = gpu::upload_running(memory, input, b);
        gpu::Result result(memory, output, device, b, heads, input.query.length, size);
        task.output = result.target();
        gpu::Numbers score(memory, gpu::sequence_of(rows.score, b, count), device, count, Use::write);
        gpu::Numbers maximum(memory, gpu::sequence_of(rows.maximum, b, count), device, count, Use::write);
        gpu::Numbers denominator(memory, gpu::sequence_of(rows.denominator, b, count), device, count, Use::write);
        const auto place = [&](const gpu::Numbers& numbers) {
            return numbers.data() != nullptr ? numbers.data() : memory.take<float>(count);
        };
        task.r.score = place(score);
        task.r.maximum = place(maximum);
        task.r.denominator = place(denominator);
        gpu::Numbers held(memory, gpu::sequence_of(state.numerator, b, heads * size), device, heads * size,
                          Use::change);
        gpu::Numbers held_denominator(memory, gpu::sequence_of(state.denominator, b, heads), device, heads,
                                      Use::change);
        gpu::Numbers held_maximum(memory, gpu::sequence_of(state.maximum, b, heads), device, heads, Use::change);
        task.held_numerator = held.data();
        task.held_denominator = held_denominator.data();
        task.held_maximum = held_maximum.data();
        const std::int64_t chunks = heads * gpu::chunks_of(task.r);
        task.chunk_maximum = memory.take<float>(chunks);
        task.earlier_maximum = memory.take<float>(chunks);
        task.chunk_denominator = memory.take<double>(chunks);
        task.earlier_denominator = memory.take<double>(chunks);
        task.numerators = memory.take<float>(chunks * size);
        gpu::run_entry(library, library.running_forward, task, input.cancel, where);
        result.fetch();
        for (gpu::Numbers* numbers : {&score, &maximum, &denominator, &held, &held_denominator, &held_maximum})
            numbers->fetch();
    }
}

void running_backward_gpu(const RunningInput& input, const RunningRows& rows, const TensorView& output,
                          const TensorView& output_gradient, const AttentionGradients& gradients) {
    constexpr const char* where = "running attention backward";
    const HsPlugin& library = gpu::plugin(where);
    if (library.running_backward == nullptr) gpu::refuse(where);
    const Device device = input.query.device;
    const std::int64_t heads = input.query.heads, length = input.query.length, count = heads * length;
    const std::int64_t keys = input.key.size, values = input.value.size;
    for (std::int64_t b = 0; b < input.query.batch; ++b) {
        gpu::Memory memory(library, where);
        HsRunningBackward task{};
        task.r = gpu::upload_running(memory, input, b);
        const auto on_device = [&](float* all) {
            float* own = all + b * count;
            return device == Device::gpu ? own : memory.upload(own, count);
        };
        task.r.score = on_device(rows.score);
        task.r.maximum = on_device(rows.maximum);
        task.r.denominator = on_device(rows.denominator);
        task.output = gpu::upload(memory, output, b);
        task.gradient = gpu::upload(memory, output_gradient, b);
        gpu::Result query(memory, gradients.query, device, b, heads, length, keys);
        gpu::Result key(memory, gradients.key, device, b, input.key.heads, length, keys);
        gpu::Result value(memory, gradients.value, device, b, input.key.heads, length, values);
        task.query = query.target();
        task.key = key.target();
        task.value = value.target();
        const std::int64_t chunks = heads * gpu::chunks_of(task.r);
        task.products = memory.take<float>(count);
        task.slopes = memory.take<float>(count);
        task.later = memory.take<float>(chunks * values);
        task.later_products = memory.take<float>(chunks);
        if (task.key.data != nullptr) task.key_parts = memory.take<float>(count * keys);
        if (task.value.data != nullptr) task.value_parts = memory.take<float>(count * values);
        gpu::run_entry(library, library.running_backward, task, input.cancel, where);
        for (gpu::Result* result : {&query, &key, &value}) result->fetch();
    }
}

}  // namespace headscope::kernels
