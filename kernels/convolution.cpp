// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks of tokens and channels by shape alone; what blocks add to weights and biases is added up in their order.
#include "kernels/convolution.h"

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/attention/workspace.h"
#include "kernels/cpu/dense/convolution.h"
#include "kernels/cpu/flush_denormals.h"
#include "kernels/operators.h"
#include "kernels/parallel.h"
#include "kernels/reference/elements.h"

namespace headscope::kernels {
namespace {

class Blocks {
public:
    explicit Blocks(const ShortConvolution& work)
        : work_(work),
          token_blocks_((work.length + cpu::kConvolutionTokens - 1) / cpu::kConvolutionTokens),
          channel_blocks_((work.channels + cpu::kConvolutionChannels - 1) / cpu::kConvolutionChannels),
          weight_(static_cast<std::size_t>(work.taps * work.channels)),
          bias_(static_cast<std::size_t>(work.channels)) {
        const auto vector = [&](const void* data) {
            return TensorView{data, work.type, 1, 1, 1, work.channels * work.taps, 0, 0, 0};
        };
        for (std::int64_t c = 0; c < work.channels; ++c) {
            for (std::int64_t j = 0; j < work.taps; ++j)
                weight_[static_cast<std::size_t>(j * work.channels + c)] =
                    static_cast<float>(reference::read(vector(work.weight), 0, 0, 0, c * work.taps + j));
            if (work.bias != nullptr)
                bias_[static_cast<std::size_t>(c)] = static_cast<float>(reference::read(vector(work.bias), 0, 0, 0, c));
        }
    }

    /// Parts that add to the sums of all channels: one for each block of tokens.
    std::int64_t parts() const { return work_.batch * token_blocks_; }

    /// body(task, part, worker)
    template <class Body>
    void run(const Body& body) const {
        backend_for(Device::cpu);  // HEADSCOPE_KERNELS is heard before the first SIMD call
        parallel_for(parts() * channel_blocks_, [&](std::int64_t index, int worker) {
            const cpu::FlushDenormals guard;
            const std::int64_t part = index / channel_blocks_;
            cpu::ConvolutionTask task;
            task.work = &work_;
            task.weight = weight_.data();
            task.bias = bias_.data();
            task.sequence = part / token_blocks_;
            task.first = part % token_blocks_ * cpu::kConvolutionTokens;
            task.last = std::min(task.first + cpu::kConvolutionTokens, work_.length);
            task.first_channel = index % channel_blocks_ * cpu::kConvolutionChannels;
            task.channels = std::min(cpu::kConvolutionChannels, work_.channels - task.first_channel);
            body(task, part, worker);
        });
    }

private:
    const ShortConvolution& work_;
    std::int64_t token_blocks_, channel_blocks_;
    std::vector<float> weight_, bias_;
};

void check(const ShortConvolution& work) {
    if (work.taps < 1 || work.taps > kMostTaps)
        throw Error("convolution", "1 to " + std::to_string(kMostTaps) + " taps", std::to_string(work.taps));
    if (work.row_stride < work.channels)
        throw Error("convolution", "rows at least " + std::to_string(work.channels) + " apart",
                    std::to_string(work.row_stride));
}

}  // namespace

void short_convolution(const ShortConvolution& work, void* y, Device device) {
    check(work);
    if (device == Device::gpu) return short_convolution_gpu(work, y, device);
    Blocks(work).run([&](cpu::ConvolutionTask task, std::int64_t, int) {
        task.y = y;
        cpu::convolution_block(task);
    });
}

void short_convolution_backward(const ShortConvolution& work, const void* dy, void* dx, float* d_weight, float* d_bias,
                                Device device) {
    check(work);
    if (work.before != nullptr) throw Error("convolution backward", "a text from its beginning", "tokens before it");
    if (device == Device::gpu) return short_convolution_backward_gpu(work, dy, dx, d_weight, d_bias, device);
    const Blocks blocks(work);
    const bool sums_wanted = d_weight != nullptr || d_bias != nullptr;
    const std::int64_t size = (work.taps + 1) * work.channels;
    std::vector<float> sums(sums_wanted ? static_cast<std::size_t>(blocks.parts() * size) : 0);
    cpu::Scratch scratch(cpu::convolution_scratch());
    blocks.run([&](cpu::ConvolutionTask task, std::int64_t part, int worker) {
        task.dy = dy;
        task.dx = dx;
        task.sums = sums_wanted ? sums.data() + part * size : nullptr;
        task.scratch = scratch.of(worker);
        cpu::convolution_backward_block(task);
    });
    std::vector<double> total(static_cast<std::size_t>(size));
    for (std::size_t n = 0; n < sums.size(); ++n) total[n % total.size()] += double{sums[n]};
    const auto write = [&](std::int64_t row, float* to, std::int64_t stride) {
        for (std::int64_t c = 0; to != nullptr && c < work.channels; ++c)
            to[c * stride] = static_cast<float>(total[static_cast<std::size_t>(row * work.channels + c)]);
    };
    for (std::int64_t j = 0; d_weight != nullptr && j < work.taps; ++j) write(j, d_weight + j, work.taps);
    write(work.taps, d_bias, 1);
}

}  // namespace headscope::kernels
