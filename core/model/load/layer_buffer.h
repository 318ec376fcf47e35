// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/stored_tensor.h"
#include "core/model/load/tensor_plan.h"

namespace headscope::model {

/// Memory that the tensors of one layer at a time are views into, and their places in other memory. Threads: the
/// compute thread; const members from any.
class LayerBuffer {
public:
    LayerBuffer(std::shared_ptr<const checkpoint::Checkpoint> file, checkpoint::LoadAs precision);

    at::ScalarType type_of(const TensorPlan::Want& want) const;
    /// Shape in memory of the tensor that the want fills.
    std::vector<std::int64_t> memory_shape(const TensorPlan::Want& want) const;
    /// Bytes of that tensor, up to where the next one may begin.
    std::int64_t room_of(const TensorPlan::Want& want) const;

    /// Makes room for a layer of `bytes`; memory is taken on the first use.
    void reserve(std::int64_t bytes);
    /// Gives the memory back to the system.
    void release() { bytes_ = at::Tensor(); }
    /// The memory itself, on the processor.
    const at::Tensor& own_bytes();

    /// The wanted tensor in `bytes`, a layer's memory on any device, from byte `begin` on.
    at::Tensor view(const at::Tensor& bytes, const TensorPlan::Want& want, std::int64_t begin) const;
    /// Writes the numbers of `stored` there, into memory of the processor. Returns the part that was written.
    at::Tensor write(const at::Tensor& bytes, const TensorPlan::Want& want, std::int64_t begin,
                     const checkpoint::StoredTensor& stored) const;

    /// Sets the wanted tensor to its place in the buffer, which begins at byte `begin`.
    void show(const TensorPlan::Want& want, std::int64_t begin);
    /// The same with its numbers. Returns the part that was written.
    at::Tensor fill(const TensorPlan::Want& want, std::int64_t begin, const checkpoint::StoredTensor& stored);
    /// Writes entry `index` of the first dimension of a tensor that is shown, and returns it.
    at::Tensor fill_entry(const TensorPlan::Want& want, std::int64_t begin, std::int64_t index,
                          const checkpoint::StoredTensor& stored);

private:
    /// The last two dimensions are exchanged in memory (PackedSource::transposed).
    bool lies_transposed(const TensorPlan::Want& want) const;
    at::Tensor place(const at::Tensor& bytes, const TensorPlan::Want& want, std::int64_t begin) const;

    std::shared_ptr<const checkpoint::Checkpoint> file_;
    checkpoint::LoadAs precision_;
    std::int64_t size_ = 0;
    at::Tensor bytes_;
};

/// Adds to the count of a tensor's NaN and infinite numbers.
void add_not_finite(std::vector<NotFinite>& found, const std::string& tensor, std::int64_t numbers,
                    std::int64_t elements);

}  // namespace headscope::model
