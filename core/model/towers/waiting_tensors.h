// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include "core/base/io/nameless_file.h"
#include "core/model/model.h"

namespace headscope::model {

/// Tensors of passes that wait while other passes run: in memory up to a limit, beyond it in a file without a name.
/// They come back with the same bits, strides and device. Errors: Error io (no space). Threads: the compute thread.
class WaitingTensors {
public:
    /// All wait in memory.
    WaitingTensors() = default;
    explicit WaitingTensors(WaitingPlace place) : place_(std::move(place)) {}

    /// The place of one tensor, and of its successors in the file.
    class Slot {
    public:
        bool in_file() const { return in_file_; }

    private:
        friend class WaitingTensors;
        at::Tensor tensor_;  ///< in memory, or undefined
        bool in_file_ = false;
        std::uint64_t begin_ = 0, room_ = 0;  ///< bytes of the file
        std::vector<std::int64_t> sizes_, strides_;
        at::TensorOptions options_;
    };

    /// Fills an empty slot.
    void put(Slot& slot, at::Tensor tensor);
    /// The slot's tensor, which stays there; undefined if the slot is empty.
    at::Tensor read(const Slot& slot) const;
    /// The same; empties the slot.
    at::Tensor take(Slot& slot);

private:
    WaitingPlace place_;
    std::uint64_t held_ = 0;  ///< bytes in memory
    std::uint64_t end_ = 0;   ///< of the file
    std::optional<NamelessFile> file_;
};

}  // namespace headscope::model
