// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/packed_bytes.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>

#include "core/checkpoint/tensor_reader.h"
#include "kernels/parallel.h"

namespace headscope::checkpoint {
namespace {

constexpr std::int64_t kNumbersOfThread = 1 << 16;  ///< that a thread takes at once
constexpr std::int64_t kNumbersAtOnce = 1 << 22;    ///< that lie in between in float32

}  // namespace

PackedBytes::PackedBytes(const std::vector<InputFile>& files, std::shared_ptr<const PackedSource> source,
                         const Cancellation& cancellation, bool briefly)
    : source_(std::move(source)) {
    for (const TensorInfo& part : source_->parts) {
        const InputFile& file = files.at(part.file);
        parts_.push_back(briefly ? load_briefly(file, part, cancellation)
                                 : load_tensor(file, part, part.type, cancellation));
        bytes_.emplace_back(static_cast<const std::byte*>(parts_.back().const_data_ptr()), parts_.back().nbytes());
    }
    source_->tensor->check(bytes_);
}

void PackedBytes::unpack(std::int64_t first, std::int64_t count, const at::Tensor& into) const {
    const PackedTensor& tensor = *source_->tensor;
    const std::int64_t columns = tensor.columns();
    if (into.scalar_type() == at::kFloat && into.is_contiguous()) {
        auto* numbers = into.mutable_data_ptr<float>();
        const std::int64_t rows = std::max<std::int64_t>(1, kNumbersOfThread / std::max<std::int64_t>(1, columns));
        kernels::parallel_for((count + rows - 1) / rows, [&](std::int64_t piece, int) {
            const std::int64_t begin = piece * rows;
            tensor.unpack(bytes_, first + begin, std::min(rows, count - begin), numbers + begin * columns);
        });
        return;
    }
    if (!into.is_contiguous()) {
        const at::Tensor numbers = at::empty({count * columns}, at::kFloat);
        unpack(first, count, numbers);
        into.copy_(numbers.view(into.sizes()));
        return;
    }
    const at::Tensor flat = into.view({count, columns});
    const std::int64_t rows_at_once = std::max<std::int64_t>(1, kNumbersAtOnce / std::max<std::int64_t>(1, columns));
    const at::Tensor numbers = at::empty({std::min(count, rows_at_once), columns}, at::kFloat);
    for (std::int64_t row = 0; row < count; row += rows_at_once) {
        const std::int64_t rows = std::min(rows_at_once, count - row);
        unpack(first + row, rows, numbers.narrow(0, 0, rows));
        flat.narrow(0, row, rows).copy_(numbers.narrow(0, 0, rows));
    }
}

at::Tensor PackedBytes::all(at::ScalarType type) const {
    const at::Tensor numbers = at::empty(source_->tensor->shape(), at::TensorOptions(type));
    unpack(0, source_->tensor->rows(), numbers);
    return source_->transposed ? numbers.transpose(-1, -2) : numbers;
}

}  // namespace headscope::checkpoint
