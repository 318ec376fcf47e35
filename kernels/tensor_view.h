// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Strided views of the tensors that operators read and write.

#include <cstdint>

namespace headscope::kernels {

enum class ElementType : std::uint8_t { float32, bfloat16 };
/// Memory that a view points into; all views of a call are of one device.
enum class Device : std::uint8_t { cpu, gpu };

/// A strided view of [batch, heads, length, size]; the stride of the last dimension is 1, the others are in elements.
struct TensorView {
    const void* data = nullptr;
    ElementType type = ElementType::float32;
    std::int64_t batch = 0, heads = 0, length = 0, size = 0;
    std::int64_t batch_stride = 0, head_stride = 0, row_stride = 0;
    Device device = Device::cpu;
};

/// Place of O: float32, [B, H, Lq, dv] with unit stride in dv. May not overlap an input. data may be null: no output.
struct OutputView {
    float* data = nullptr;
    std::int64_t batch_stride = 0, head_stride = 0, row_stride = 0;
};

/// A [batch, heads, length, size] result to fill; unit stride in size, the others in elements. Null data skips it.
struct MutableView {
    void* data = nullptr;
    ElementType type = ElementType::float32;
    std::int64_t batch_stride = 0, head_stride = 0, row_stride = 0;
};

}  // namespace headscope::kernels
