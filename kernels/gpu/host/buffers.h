// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Flat arrays of one call: copies on the device, or the places themselves in GPU memory.

#include <vector>

#include "kernels/gpu/host/plugin.h"
#include "kernels/tensor_view.h"

namespace headscope::kernels::gpu {

inline std::int64_t bytes_of(ElementType type) {
    return type == ElementType::float32 ? 4 : 2;
}
inline std::int32_t type_of(ElementType type) {
    return type == ElementType::float32 ? HS_FLOAT32 : HS_BFLOAT16;
}

/// Counts are in bytes. Null places stay null.
class Buffers {
public:
    Buffers(Memory& memory, Device device) : memory_(memory), device_(device) {}

    const void* read(const void* place, std::int64_t bytes) {
        if (place == nullptr || device_ == Device::gpu) return place;
        return memory_.upload(static_cast<const char*>(place), bytes);
    }
    void* write(void* place, std::int64_t bytes) {
        if (place == nullptr || device_ == Device::gpu) return place;
        return remember(place, memory_.take<char>(bytes), bytes);
    }
    void* change(void* place, std::int64_t bytes) {
        if (place == nullptr || device_ == Device::gpu) return place;
        return remember(place, memory_.upload(static_cast<const char*>(place), bytes), bytes);
    }
    float* write_floats(float* place, std::int64_t count) { return static_cast<float*>(write(place, 4 * count)); }
    float* change_floats(float* place, std::int64_t count) { return static_cast<float*>(change(place, 4 * count)); }

    /// Copies what was written back to its places.
    void fetch() {
        for (const Copy& copy : copies_) memory_.fetch(copy.from, copy.bytes, copy.to);
    }

private:
    struct Copy {
        const char* from;
        char* to;
        std::int64_t bytes;
    };
    void* remember(void* place, char* own, std::int64_t bytes) {
        copies_.push_back({own, static_cast<char*>(place), bytes});
        return own;
    }

    Memory& memory_;
    Device device_;
    std::vector<Copy> copies_;
};

}  // namespace headscope::kernels::gpu
