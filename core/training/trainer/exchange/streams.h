// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Streams of any device of LibTorch, but the processor.

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace headscope::training {

/// The calling thread's.
inline c10::Stream current_stream(const c10::Device& device) {
    return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

/// One that computes while others do.
inline c10::Stream another_stream(const c10::Device& device) {
    return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

/// Work that `later` gets from now on begins when that of `earlier` so far is done.
inline void follow(const c10::Stream& later, const c10::Stream& earlier) {
    c10::Event done(earlier.device_type());
    done.record(earlier);
    done.block(later);
}

}  // namespace headscope::training
