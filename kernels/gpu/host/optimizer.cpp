// SPDX-License-Identifier: GPL-3.0-or-later
// The optimizer's step and the norm of gradients on a GPU.
#include "kernels/optimizer.h"

#include <cmath>

#include "kernels/gpu/host/buffers.h"
#include "kernels/gpu/host/sequence.h"
#include "kernels/gpu/operators.h"

namespace headscope::kernels {

void adamw_step_gpu(const FlatParameters& parameters, const AdamWSettings& settings, Device device) {
    constexpr const char* where = "AdamW";
    const HsPlugin& library = gpu::plugin(where);
    if (library.adamw == nullptr) gpu::refuse(where);
    gpu::Memory memory(library, where);
    gpu::Buffers buffers(memory, device);
    const FlatParameters& p = parameters;
    const AdamWSettings& s = settings;
    const auto steps = static_cast<double>(s.step);
    HsAdamW task{};
    task.size = p.size;
    task.decayed = p.decayed;
    task.type = gpu::type_of(p.type);
    task.gradient_type = gpu::type_of(p.gradient_type);
    task.weights = buffers.change(p.weights, p.size * gpu::bytes_of(p.type));
    task.master = buffers.change_floats(p.master, p.size);
    task.gradients = buffers.change(p.gradients, p.size * gpu::bytes_of(p.gradient_type));
    task.first = buffers.change_floats(p.first, p.size);
    task.second = buffers.change_floats(p.second, p.size);
    task.gradient_scale = static_cast<float>(s.gradient_scale);
    task.keep_first = static_cast<float>(s.beta1);
    task.add_first = static_cast<float>(1.0 - s.beta1);
    task.keep_second = static_cast<float>(s.beta2);
    task.add_second = static_cast<float>(1.0 - s.beta2);
    task.step = static_cast<float>(s.rate / (1.0 - std::pow(s.beta1, steps)));
    task.second_scale = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(s.beta2, steps)));
    task.epsilon = static_cast<float>(s.epsilon);
    task.shrink = static_cast<float>(1.0 - s.rate * s.decay);
    task.clear = s.clear_gradients ? 1 : 0;
    gpu::start_entry(library.adamw, task, nullptr, where);
    buffers.fetch();
}

double squared_norm_gpu(const void* values, ElementType type, std::int64_t size, Device device) {
    constexpr const char* where = "norm of gradients";
    const HsPlugin& library = gpu::plugin(where);
    if (library.squared_norm == nullptr) gpu::refuse(where);
    gpu::Memory memory(library, where);
    gpu::Buffers buffers(memory, device);
    const std::int64_t pieces = (size + HS_NORM_PIECE - 1) / HS_NORM_PIECE;
    HsSquaredNorm task{size, gpu::type_of(type), buffers.read(values, size * gpu::bytes_of(type)),
                       memory.take<double>(pieces)};
    gpu::start_entry(library.squared_norm, task, nullptr, where);
    double total = 0.0;
    for (const double sum : memory.fetch(task.sums, pieces)) total += sum;
    return total;
}

}  // namespace headscope::kernels
