// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/io/input_file.h"
#include "core/base/progress.h"
#include "core/checkpoint/packed/packed_source.h"

namespace headscope::checkpoint {

/// A packed tensor in memory as the files have it. Threads: const members from several at once; unpacking uses
/// LibTorch's threads of the caller, the numbers do not depend on how many.
class PackedBytes {
public:
    /// Reads all parts and checks their content. `briefly`: for a short time (brief_tensor). Errors: as load_tensor and
    /// PackedTensor::check.
    PackedBytes(const std::vector<InputFile>& files, std::shared_ptr<const PackedSource> source,
                const Cancellation& cancellation, bool briefly = false);

    const PackedSource& source() const { return *source_; }

    /// Rows [first, first + count) of the packed tensor into `into`: of as many numbers, of any shape and floating
    /// type.
    void unpack(std::int64_t first, std::int64_t count, const at::Tensor& into) const;
    /// A row's blocks, of a tensor with PackedTensor::block_rows().
    const std::byte* blocks_of_row(std::int64_t row) const { return source_->tensor->blocks_of_row(bytes_, row); }
    /// The model's tensor: a view with the last two dimensions exchanged where PackedSource::transposed is set.
    at::Tensor all(at::ScalarType type) const;

private:
    std::shared_ptr<const PackedSource> source_;
    std::vector<at::Tensor> parts_;
    std::vector<std::span<const std::byte>> bytes_;
};

}  // namespace headscope::checkpoint
