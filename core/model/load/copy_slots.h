// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include "core/base/process/read_ahead.h"
#include "core/base/progress.h"

namespace headscope::model {

/// Two buffers on a device. While the device computes with one, a second thread fills pinned memory of the processor,
/// which a stream of its own copies into the other; events order both. Threads: the compute thread.
class CopySlots {
public:
    /// Writes piece `number` into `host` [bytes]; returns how many bytes it wrote from the start. Called on the second
    /// thread, or by take(); never twice at a time.
    using Fill =
        std::function<std::int64_t(std::int64_t number, const at::Tensor& host, const Cancellation& cancellation)>;

    /// Null for a device with one stream.
    static std::unique_ptr<CopySlots> open(const at::Device& device, std::int64_t bytes, Fill fill);
    CopySlots(const c10::Stream& stream, std::int64_t bytes, Fill fill);
    ~CopySlots();
    CopySlots(const CopySlots&) = delete;
    CopySlots& operator=(const CopySlots&) = delete;

    /// The device's buffer with piece `number`, for work that is queued on its present stream from now on. The buffer
    /// of the last call may be overwritten from now on.
    at::Tensor take(std::int64_t number, const Cancellation* cancellation);
    /// Fills and copies the piece for the next take().
    void start(std::int64_t number) { ahead_.start(number); }
    /// Waits for a piece that start() asked for, and drops it.
    void drop() { ahead_.drop(); }
    /// Gives the memory back; take() takes it again.
    void release();

private:
    struct Slot {
        explicit Slot(c10::DeviceType type) : copied(type), used(type) {}

        at::Tensor host, there;
        c10::Event copied;  ///< of the copying stream: `there` is filled, `host` may be overwritten
        c10::Event used;    ///< of the computing stream: `there` may be overwritten
    };

    void reserve(const c10::Stream& computing);
    std::size_t load(std::int64_t number, const Cancellation& cancellation);

    Fill fill_;
    std::int64_t bytes_;
    c10::Stream stream_;               ///< copies
    c10::OptionalDeviceGuard ending_;  ///< while events of slots_ are destroyed
    std::array<Slot, 2> slots_;
    std::size_t current_ = 0;       ///< slot of the last take(); the second thread fills the other
    ReadAhead<std::size_t> ahead_;  ///< slots
};

}  // namespace headscope::model
