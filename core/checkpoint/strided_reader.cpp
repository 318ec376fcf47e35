// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/strided_reader.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <vector>

#include "core/checkpoint/data_type.h"
#include "core/checkpoint/torch_types.h"

namespace headscope::checkpoint {
namespace {

constexpr std::uint64_t dense_enough = 8;  // elements of file for one of the tensor
constexpr std::uint64_t always_whole = 4096;

struct Dimension {
    std::int64_t index = 0;
    std::int64_t size = 0;
    std::int64_t stride = 0;
};

class StridedReader {
public:
    StridedReader(FilePieces& pieces, const TensorInfo& info, const at::Tensor& to)
        : pieces_(pieces), info_(info), element_(static_cast<std::uint64_t>(bits(info.type) / 8)) {
        for (std::size_t i = 0; i < info.shape.size(); ++i) {
            if (info.shape[i] > 1) order_.push_back({static_cast<std::int64_t>(i), info.shape[i], info.strides[i]});
        }
        std::stable_sort(order_.begin(), order_.end(),
                         [](const Dimension& a, const Dimension& b) { return a.stride > b.stride; });
        // Booleans are copied as bytes: any other than 0 and 1 is no bool yet.
        const bool boolean = info.type == DataType::boolean;
        target_ = boolean ? to.view(c10::ScalarType::Byte) : to;
        buffer_ = at::empty({static_cast<std::int64_t>(piece_bytes / element_)},
                            at::TensorOptions(boolean ? c10::ScalarType::Byte : *torch_type(info.type)));
    }

    void run() { read(0, info_.begin, target_); }

private:
    /// Elements from the first to the last of what the dimensions from `level` span.
    std::uint64_t span(std::size_t level) const {
        std::uint64_t elements = 1;
        for (std::size_t i = level; i < order_.size(); ++i) {
            elements += static_cast<std::uint64_t>(order_[i].size - 1) * static_cast<std::uint64_t>(order_[i].stride);
        }
        return elements;
    }

    std::uint64_t count(std::size_t level) const {
        std::uint64_t elements = 1;
        for (std::size_t i = level; i < order_.size(); ++i) elements *= static_cast<std::uint64_t>(order_[i].size);
        return elements;
    }

    /// True for what is worth reading in one block, gaps included.
    bool is_block(std::uint64_t span, std::uint64_t count) const {
        if (span * element_ > piece_bytes) return false;
        return span * element_ <= always_whole || span / dense_enough <= count;
    }

    /// `part`: what of the target the dimensions from `level` fill; the outer ones were selected away or have size 1.
    void read(std::size_t level, std::uint64_t offset, const at::Tensor& part) {
        if (is_block(span(level), count(level))) {
            read_block(span(level), offset, part);
            return;
        }
        const Dimension& outer = order_[level];
        const std::uint64_t inner = span(level + 1);
        const auto stride = static_cast<std::uint64_t>(outer.stride);
        // As many slices at once as a block holds; stride is not 0, or the span would be the inner one.
        std::int64_t most = 1;
        if (inner * element_ < piece_bytes && stride > 0) {
            const std::uint64_t more = (piece_bytes / element_ - inner) / stride;
            most = static_cast<std::int64_t>(std::min(more + 1, static_cast<std::uint64_t>(outer.size)));
        }
        const auto slices = static_cast<std::uint64_t>(most);
        const bool block = is_block((slices - 1) * stride + inner, slices * count(level + 1));
        if (!block) most = 1;
        for (std::int64_t i = 0; i < outer.size; i += most) {
            const std::int64_t taken = std::min(most, outer.size - i);
            const at::Tensor slice = part.narrow(outer.index, i, taken);
            const std::uint64_t begin = offset + static_cast<std::uint64_t>(i) * stride * element_;
            if (block)
                read_block(static_cast<std::uint64_t>(taken - 1) * stride + inner, begin, slice);
            else
                read(level + 1, begin, slice);
        }
    }

    void read_block(std::uint64_t span, std::uint64_t offset, const at::Tensor& part) {
        pieces_.read(offset, buffer_.mutable_data_ptr(), static_cast<std::size_t>(span * element_));
        part.copy_(buffer_.as_strided(part.sizes(), info_.strides));
    }

    FilePieces& pieces_;
    const TensorInfo& info_;
    std::uint64_t element_;
    std::vector<Dimension> order_;
    at::Tensor target_;
    at::Tensor buffer_;
};

}  // namespace

void read_strided(FilePieces& pieces, const TensorInfo& info, const at::Tensor& to) {
    if (info.elements > 0) StridedReader(pieces, info, to).run();
}

}  // namespace headscope::checkpoint
