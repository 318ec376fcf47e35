// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include <c10/core/Device.h>

namespace headscope::test {

/// LibTorch's PrivateUse1 as a GPU without a GPU, named "emulated". Its memory is closed to the host: a read or write
/// outside an operator ends the process by SIGSEGV. Operators run on the CPU, on copies of their arguments; tensors of
/// other devices are refused in CUDA's words. Registers the device on the first call. Threads: any.
c10::Device emulated_device();

/// Opens all memory of the device, for kernels that take its addresses: the GPU libraries' emulator. Nests. Threads:
/// any; the memory is open to all.
class OpenDeviceMemory {
public:
    OpenDeviceMemory();
    ~OpenDeviceMemory();
    OpenDeviceMemory(const OpenDeviceMemory&) = delete;
    OpenDeviceMemory& operator=(const OpenDeviceMemory&) = delete;
};

/// Tensors that were given memory of the device so far. Threads: any.
std::int64_t device_allocations();

/// While it lives the device has pinned memory for copies, as CUDA does; else LibTorch refuses to make it. Threads:
/// any; one at a time.
class OfferPinnedMemory {
public:
    OfferPinnedMemory();
    ~OfferPinnedMemory();
    OfferPinnedMemory(const OfferPinnedMemory&) = delete;
    OfferPinnedMemory& operator=(const OfferPinnedMemory&) = delete;

    /// Requests for the allocator of pinned memory since it lives.
    std::int64_t requests() const;
};

}  // namespace headscope::test
