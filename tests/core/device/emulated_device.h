// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include <c10/core/Device.h>

namespace headscope::test {

/// LibTorch's PrivateUse1 as a GPU without a GPU, named "emulated". Its memory is closed to the host: a read or write
/// outside an operator ends the process by SIGSEGV. Operators run on the CPU, on copies of their arguments; tensors of
/// other devices are refused in CUDA's words. Work is done at once, on any stream; c10::Error where streams use the
/// same bytes without an event between, and SIGSEGV where the host writes pinned memory that a copy may still read.
/// Registers the device on the first call. Threads: any.
c10::Device emulated_device();

struct EmulatedState {
    std::int64_t bytes = 0;         ///< taken now, in whole pages
    std::int64_t copies_aside = 0;  ///< so far, on streams other than the default one
    std::int64_t operators = 0;     ///< that ran so far; views and copies do not count
    std::int64_t waits = 0;         ///< of the host for the whole device, so far
    std::int64_t allocations = 0;   ///< so far
    std::int64_t pinned = 0;        ///< requests for pinned memory, so far
};
EmulatedState emulated_state();

/// The device has no stream but the default one while this lives.
class OneStream {
public:
    OneStream();
    ~OneStream();
    OneStream(const OneStream&) = delete;
    OneStream& operator=(const OneStream&) = delete;
};

/// The device has no pinned memory while this lives: LibTorch refuses to make it.
class NoPinnedMemory {
public:
    NoPinnedMemory();
    ~NoPinnedMemory();
    NoPinnedMemory(const NoPinnedMemory&) = delete;
    NoPinnedMemory& operator=(const NoPinnedMemory&) = delete;
};

/// Opens all memory of the device, for kernels that take its addresses: the GPU libraries' emulator. Nests. Threads:
/// any; the memory is open to all.
class OpenDeviceMemory {
public:
    OpenDeviceMemory();
    ~OpenDeviceMemory();
    OpenDeviceMemory(const OpenDeviceMemory&) = delete;
    OpenDeviceMemory& operator=(const OpenDeviceMemory&) = delete;
};

}  // namespace headscope::test
