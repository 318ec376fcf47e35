// SPDX-License-Identifier: GPL-3.0-or-later
// Row operators on a GPU, one call of the plugin each.
#include "kernels/rows.h"

#include "kernels/backend.h"
#include "kernels/gpu/host/buffers.h"
#include "kernels/gpu/host/sequence.h"
#include "kernels/gpu/operators.h"

namespace headscope::kernels {
namespace gpu {
namespace {

std::int32_t short_size(std::int64_t x) {
    return static_cast<std::int32_t>(x);
}

std::int64_t sum_parts_of(std::int64_t rows) {
    return (rows + HS_SUM_ROWS - 1) / HS_SUM_ROWS;
}

/// An entry of the chosen library with the memory of one call.
class RowCall {
public:
    RowCall(const char* where, Device device)
        : where_(where), library_(plugin(where)), memory(library_, where), buffers(memory, device) {}

    template <class Entry, class Task>
    void run(Entry HsPlugin::*entry, const Task& task) {
        if (library_.*entry == nullptr) refuse(where_);
        start_entry(library_.*entry, task, nullptr, where_);
        buffers.fetch();
    }

private:
    const char* where_;
    const HsPlugin& library_;

public:
    Memory memory;
    Buffers buffers;
};

HsRmsNorm norm_of(const RmsNorm& norm, RowCall& call) {
    const std::int64_t bytes = bytes_of(norm.type);
    HsRmsNorm task{};
    task.rows = norm.rows;
    task.size = short_size(norm.size);
    task.type = type_of(norm.type);
    task.x = call.buffers.read(norm.x, norm.rows * norm.size * bytes);
    task.gain = call.buffers.read(norm.gain, norm.size * bytes);
    task.epsilon = static_cast<float>(norm.epsilon);
    task.gain_offset = static_cast<float>(norm.gain_offset);
    return task;
}

}  // namespace
}  // namespace gpu

void rms_norm_gpu(const RmsNorm& norm, void* y, Device device) {
    gpu::RowCall call("RMS norm", device);
    HsRmsNorm task = gpu::norm_of(norm, call);
    task.inverse = call.buffers.write_floats(norm.inverse, norm.rows);
    task.y = call.buffers.write(y, norm.rows * norm.size * gpu::bytes_of(norm.type));
    call.run(&HsPlugin::rms_norm, task);
}

void rms_norm_backward_gpu(const RmsNorm& norm, const void* dy, const void* addend, void* dx, float* d_gain,
                           Device device) {
    gpu::RowCall call("RMS norm backward", device);
    const std::int64_t bytes = norm.rows * norm.size * gpu::bytes_of(norm.type);
    HsRmsNorm task = gpu::norm_of(norm, call);
    task.inverse = call.buffers.change_floats(norm.inverse, norm.rows);
    task.dy = call.buffers.read(dy, bytes);
    task.addend = call.buffers.read(addend, bytes);
    task.y = call.buffers.write(dx, bytes);
    task.d_gain = call.buffers.write_floats(d_gain, norm.size);
    if (d_gain != nullptr) task.parts = call.memory.take<float>(gpu::sum_parts_of(norm.rows) * norm.size);
    call.run(&HsPlugin::rms_norm_backward, task);
}

void gated_silu_gpu(const void* gate_up, ElementType type, std::int64_t rows, std::int64_t size, void* y,
                    Device device) {
    gpu::RowCall call("gated SiLU", device);
    const std::int64_t bytes = rows * size * gpu::bytes_of(type);
    HsGatedSilu task{rows, gpu::short_size(size), gpu::type_of(type), nullptr, nullptr, nullptr};
    task.gate_up = call.buffers.read(gate_up, 2 * bytes);
    task.y = call.buffers.write(y, bytes);
    call.run(&HsPlugin::gated_silu, task);
}

void gated_silu_backward_gpu(const void* gate_up, const void* dy, ElementType type, std::int64_t rows,
                             std::int64_t size, void* d_gate_up, Device device) {
    gpu::RowCall call("gated SiLU backward", device);
    const std::int64_t bytes = rows * size * gpu::bytes_of(type);
    HsGatedSilu task{rows, gpu::short_size(size), gpu::type_of(type), nullptr, nullptr, nullptr};
    task.gate_up = call.buffers.read(gate_up, 2 * bytes);
    task.dy = call.buffers.read(dy, bytes);
    task.y = call.buffers.write(d_gate_up, 2 * bytes);
    call.run(&HsPlugin::gated_silu, task);
}

void rotate_gpu(const Rotation& rotation, Device device) {
    if (rotation.rows == 0) return;
    gpu::RowCall call("rotation", device);
    const std::int64_t bytes = gpu::bytes_of(rotation.type), row = rotation.heads * rotation.size;
    const std::int64_t table = rotation.positions * (rotation.turned / 2) * bytes;
    HsRotation task{};
    task.rows = rotation.rows;
    task.positions = rotation.positions;
    task.row_stride = rotation.row_stride;
    task.y_stride = rotation.y_stride;
    task.heads = gpu::short_size(rotation.heads);
    task.size = gpu::short_size(rotation.size);
    task.turned = gpu::short_size(rotation.turned);
    task.type = gpu::type_of(rotation.type);
    task.interleaved = rotation.interleaved ? 1 : 0;
    task.backward = rotation.backward ? 1 : 0;
    task.cosine = call.buffers.read(rotation.cosine, table);
    task.sine = call.buffers.read(rotation.sine, table);
    task.x = call.buffers.read(rotation.x, ((rotation.rows - 1) * rotation.row_stride + row) * bytes);
    // Between rows lie numbers of others.
    task.y = call.buffers.change(rotation.y, ((rotation.rows - 1) * rotation.y_stride + row) * bytes);
    call.run(&HsPlugin::rotate, task);
}

void cross_entropy_gpu(const CrossEntropy& work, Device device) {
    gpu::RowCall call("cross-entropy", device);
    HsCrossEntropy task{};
    task.rows = work.rows;
    task.entries = work.entries;
    task.type = gpu::type_of(work.type);
    task.gradients = work.gradients ? 1 : 0;
    task.logits = call.buffers.change(work.logits, work.rows * work.entries * gpu::bytes_of(work.type));
    task.targets = call.memory.upload(work.targets, work.rows);
    task.z_loss = work.z_loss;
    task.loss = call.memory.take<double>(work.rows);
    task.normaliser = call.memory.take<double>(work.rows);
    call.run(&HsPlugin::cross_entropy, task);
    call.memory.fetch(task.loss, work.rows, work.loss);
    call.memory.fetch(task.normaliser, work.rows, work.normaliser);
}

}  // namespace headscope::kernels
