// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Streams of any device of LibTorch, but the processor.

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

namespace headscope::training {

/// The calling thread's.
inline c10::Stream current_stream(const c10::Device& device) {
    return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

/// One that computes while others do; the calling thread's where the device has no other.
inline c10::Stream another_stream(const c10::Device& device) {
    try {
        return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
    } catch (const c10::Error&) {
        return current_stream(device);
    }
}

/// Work that `later` gets from now on begins when that of `earlier` so far is done.
inline void follow(const c10::Stream& later, const c10::Stream& earlier) {
    c10::Event done(earlier.device_type());
    done.record(earlier);
    done.block(later);
}

}  // namespace headscope::training
