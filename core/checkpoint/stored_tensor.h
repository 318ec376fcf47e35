// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// A tensor in memory as the file has it, converted when it is used. Threads: const members from several at once;
/// conversion uses LibTorch's threads of the caller.
class StoredTensor {
public:
    /// Errors as of Checkpoint::load.
    StoredTensor(const Checkpoint& file, const std::string& tensor, const Cancellation& cancellation);

    /// The shape that a model sees.
    c10::IntArrayRef shape() const { return numbers_.sizes(); }
    /// In memory.
    std::uint64_t bytes() const { return numbers_.nbytes(); }
    c10::ScalarType type() const { return numbers_.scalar_type(); }
    /// As stored: to use in place where its type is the one that is wanted.
    const at::Tensor& numbers() const { return numbers_; }

    /// Writes all numbers, in their order, into `into`: of as many, of any shape and floating type.
    void copy_to(const at::Tensor& into) const;
    /// Rows [first, first + count) of the first dimension, as `type`.
    at::Tensor rows(std::int64_t first, std::int64_t count, c10::ScalarType type) const;
    /// Rows that `ids` (int64, of any shape) name: [.., columns] of `type`.
    at::Tensor rows(const at::Tensor& ids, c10::ScalarType type) const;
    /// How many are NaN or infinite.
    std::int64_t not_finite() const;

private:
    at::Tensor numbers_;
};

}  // namespace headscope::checkpoint
