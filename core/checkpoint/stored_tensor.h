// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/checkpoint/adapter/low_rank_update.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/packed/packed_bytes.h"

namespace headscope::checkpoint {

/// A tensor in memory as the file has it, with LoRA's A and B, converted and merged when it is used. Threads: const
/// members from several at once; conversion uses LibTorch's threads of the caller.
class StoredTensor {
public:
    /// Errors as of Checkpoint::load.
    StoredTensor(const Checkpoint& file, const std::string& tensor, const Cancellation& cancellation);
    /// The same of an entry of one of its tensors (entry_of), which no adapter changes.
    StoredTensor(const Checkpoint& file, const TensorInfo& entry, const Cancellation& cancellation);

    /// Null: not packed.
    const PackedBytes* packed() const { return packed_ ? &*packed_ : nullptr; }
    /// The numbers are made when they are used: unpacked or merged.
    bool is_made() const { return packed_ || update_; }
    /// Packed, with the last two dimensions exchanged (PackedSource::transposed).
    bool is_transposed() const { return packed_ && packed_->source().transposed; }
    /// Writes all numbers into `into`: of as many, of any floating type and shape; of a merged matrix, its rows cut
    /// into groups. In their order in memory, which for a packed tensor is that of PackedSource::tensor. Not for a
    /// merged one that is_transposed().
    void copy_to(const at::Tensor& into) const;
    /// Rows [first, first + count) of the first dimension, as `type`.
    at::Tensor rows(std::int64_t first, std::int64_t count, c10::ScalarType type) const;
    /// Rows that `ids` (int64, of any shape) name: [.., columns] of `type`.
    at::Tensor rows(const at::Tensor& ids, c10::ScalarType type) const;
    /// How many are NaN or infinite. Numbers that are made are counted by their user.
    std::int64_t not_finite() const;

private:
    void read(const Checkpoint& file, const TensorInfo& info, const Cancellation& cancellation);
    /// As the file has them, before LoRA's change.
    at::Tensor plain_rows(std::int64_t first, std::int64_t count, c10::ScalarType type) const;
    /// Rows from number `first` on, as many as there are in `into` [.., columns].
    void merge(std::int64_t first, const at::Tensor& into, LowRankUpdate::Adder& adder, c10::ScalarType exact) const;

    at::Tensor numbers_;  ///< undefined where packed
    std::optional<PackedBytes> packed_;
    std::shared_ptr<const LowRankUpdate> update_;  ///< null: none
};

/// Rows of a matrix that is not packed, read from the file when they are asked for; LoRA's A and B are in memory.
/// Threads: as StoredTensor.
class FileRows {
public:
    FileRows(std::shared_ptr<const Checkpoint> file, std::string tensor, const Cancellation& cancellation);

    /// Rows that `ids` (int64, of any shape) name: [.., columns] of `type`.
    at::Tensor rows(const at::Tensor& ids, c10::ScalarType type) const;

private:
    std::shared_ptr<const Checkpoint> file_;
    std::string tensor_;
    std::shared_ptr<const LowRankUpdate> update_;  ///< null: none
};

/// Writes the numbers of a tensor into `into`: contiguous, of its shape and any floating type. Nothing else is in
/// memory but pieces of a few megabytes, or the tensor as the file has it where it is packed or where LoRA changes it
/// and `into` is neither float32 nor float64. Returns how many are NaN or infinite. Errors as of Checkpoint::load.
std::int64_t load_into(const Checkpoint& file, const std::string& tensor, const at::Tensor& into,
                       const Cancellation& cancellation);

}  // namespace headscope::checkpoint
