// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/packed/packed_bytes.h"

namespace headscope::checkpoint {

/// A tensor in memory as the file has it, converted when it is used. Threads: const members from several at once;
/// conversion uses LibTorch's threads of the caller.
class StoredTensor {
public:
    /// Errors as of Checkpoint::load.
    StoredTensor(const Checkpoint& file, const std::string& tensor, const Cancellation& cancellation);
    /// The same of an entry of one of its tensors (entry_of), which no adapter changes.
    StoredTensor(const Checkpoint& file, const TensorInfo& entry, const Cancellation& cancellation);

    /// Null: not packed.
    const PackedBytes* packed() const { return packed_ ? &*packed_ : nullptr; }
    /// Packed, with the last two dimensions exchanged (PackedSource::transposed).
    bool is_transposed() const { return packed_ && packed_->source().transposed; }
    /// Writes all numbers into `into`: of as many, of any shape and floating type. In their order in memory, which for
    /// a packed tensor is that of PackedSource::tensor.
    void copy_to(const at::Tensor& into) const;
    /// Rows [first, first + count) of the first dimension, as `type`.
    at::Tensor rows(std::int64_t first, std::int64_t count, c10::ScalarType type) const;
    /// Rows that `ids` (int64, of any shape) name: [.., columns] of `type`.
    at::Tensor rows(const at::Tensor& ids, c10::ScalarType type) const;
    /// How many are NaN or infinite. Unpacked numbers are counted by their user.
    std::int64_t not_finite() const;

private:
    void read(const Checkpoint& file, const TensorInfo& info, const Cancellation& cancellation);

    at::Tensor numbers_;  ///< undefined where packed
    std::optional<PackedBytes> packed_;
};

/// Writes the numbers of a tensor that no adapter changes into `into`: contiguous, of its shape and any floating type.
/// Nothing else is in memory but a piece of a few megabytes, or a packed tensor as the file has it. Returns how many
/// are NaN or infinite. Errors as of Checkpoint::load.
std::int64_t load_into(const Checkpoint& file, const std::string& tensor, const at::Tensor& into,
                       const Cancellation& cancellation);

/// Rows that `ids` (int64, of any shape) name, [.., columns]: `read` writes each of them once, into [1, columns].
at::Tensor gather_rows(const at::Tensor& ids, std::int64_t columns, c10::ScalarType type,
                       const std::function<void(std::int64_t row, const at::Tensor& into)>& read);

}  // namespace headscope::checkpoint
