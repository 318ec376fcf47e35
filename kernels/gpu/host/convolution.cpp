// SPDX-License-Identifier: GPL-3.0-or-later
// Causal convolution on a GPU.
#include "kernels/convolution.h"

#include "kernels/gpu/host/buffers.h"
#include "kernels/gpu/host/sequence.h"
#include "kernels/gpu/operators.h"

namespace headscope::kernels {
namespace {

/// Everything but results.
HsConvolution convolution_of(const ShortConvolution& work, gpu::Buffers& buffers) {
    const std::int64_t bytes = gpu::bytes_of(work.type), tokens = work.batch * work.length;
    HsConvolution task{};
    task.batch = work.batch;
    task.length = work.length;
    task.channels = work.channels;
    task.row_stride = work.row_stride;
    task.taps = static_cast<std::int32_t>(work.taps);
    task.type = gpu::type_of(work.type);
    task.plain = work.plain ? 1 : 0;
    task.x = buffers.read(work.x, tokens == 0 ? 0 : ((tokens - 1) * work.row_stride + work.channels) * bytes);
    task.weight = buffers.read(work.weight, work.channels * work.taps * bytes);
    task.bias = buffers.read(work.bias, work.channels * bytes);
    task.before = buffers.read(work.before, work.batch * (work.taps - 1) * work.channels * bytes);
    return task;
}

}  // namespace

void short_convolution_gpu(const ShortConvolution& work, void* y, Device device) {
    constexpr const char* where = "convolution";
    const HsPlugin& library = gpu::plugin(where);
    if (library.convolution == nullptr) gpu::refuse(where);
    gpu::Memory memory(library, where);
    gpu::Buffers buffers(memory, device);
    HsConvolution task = convolution_of(work, buffers);
    task.y = buffers.write(y, work.batch * work.length * work.channels * gpu::bytes_of(work.type));
    gpu::start_entry(library.convolution, task, nullptr, where);
    buffers.fetch();
}

void short_convolution_backward_gpu(const ShortConvolution& work, const void* dy, void* dx, float* d_weight,
                                    float* d_bias, Device device) {
    constexpr const char* where = "convolution backward";
    const HsPlugin& library = gpu::plugin(where);
    if (library.convolution_backward == nullptr) gpu::refuse(where);
    gpu::Memory memory(library, where);
    gpu::Buffers buffers(memory, device);
    const std::int64_t count = work.batch * work.length * work.channels, bytes = count * gpu::bytes_of(work.type);
    const std::int64_t parts = work.batch * ((work.length + HS_SUM_ROWS - 1) / HS_SUM_ROWS);
    HsConvolution task = convolution_of(work, buffers);
    task.dy = buffers.read(dy, bytes);
    task.dx = buffers.write(dx, bytes);
    task.d_weight = buffers.write_floats(d_weight, work.channels * work.taps);
    task.d_bias = buffers.write_floats(d_bias, work.channels);
    task.slopes = memory.take<float>(count);
    task.weight_parts = memory.take<float>(parts * work.channels * work.taps);
    task.bias_parts = memory.take<float>(parts * work.channels);
    gpu::start_entry(library.convolution_backward, task, nullptr, where);
    buffers.fetch();
}

}  // namespace headscope::kernels
