// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/adapter/low_rank_update.h"

#include <ATen/ops/mm.h>

#include <algorithm>
#include <utility>

#include "core/checkpoint/tensor_reader.h"

namespace headscope::checkpoint {
namespace {

constexpr std::int64_t kBlockNumbers = 1 << 20;
constexpr std::int64_t kBlockStep = 16;  ///< rows: blocks begin at multiples of 64 bytes

}  // namespace

LowRankUpdate::LowRankUpdate(at::Tensor a, at::Tensor b, double scale, bool transposed)
    : a_(std::move(a)), b_(std::move(b)), scale_(scale), transposed_(transposed) {}

std::int64_t LowRankUpdate::rows() const {
    return transposed_ ? a_.size(1) : b_.size(0);
}

std::int64_t LowRankUpdate::columns() const {
    return transposed_ ? b_.size(0) : a_.size(1);
}

std::int64_t LowRankUpdate::block_rows() const {
    const std::int64_t rows = kBlockNumbers / std::max<std::int64_t>(1, columns());
    return std::max(kBlockStep, rows / kBlockStep * kBlockStep);
}

LowRankUpdate::Adder::Adder(const LowRankUpdate& update, c10::ScalarType type)
    : update_(update), a_(update.a_.to(type)), b_(update.b_.to(type)) {
    memory_ = brief_tensor({std::min(update.block_rows(), update.rows()), update.columns()}, type);
}

void LowRankUpdate::Adder::compute(std::int64_t begin) {
    const std::int64_t count = std::min(update_.block_rows(), update_.rows() - begin);
    block_ = memory_.narrow(0, 0, count);
    if (update_.transposed_)
        at::mm_out(block_, a_.narrow(1, begin, count).t(), b_.t());
    else
        at::mm_out(block_, b_.narrow(0, begin, count), a_);
    block_.mul_(update_.scale_);
    begin_ = begin;
}

void LowRankUpdate::Adder::add(std::int64_t first, const at::Tensor& numbers) {
    const std::int64_t step = update_.block_rows();
    for (std::int64_t done = 0; done < numbers.size(0);) {
        const std::int64_t row = first + done, begin = row / step * step;
        if (begin != begin_) compute(begin);
        const std::int64_t count = std::min(numbers.size(0) - done, begin + block_.size(0) - row);
        numbers.narrow(0, done, count).add_(block_.narrow(0, row - begin, count));
        done += count;
    }
}

}  // namespace headscope::checkpoint
