// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Adds up the gradients of several processes while the backward pass still runs: the flat gradients are cut into blocks
// of about 25 MB, and a block goes on its way as soon as every leaf in it has its gradient (DDP, arXiv 2006.15704).
// Threads: the compute thread; hooks of leaves on a device run on LibTorch's thread for it, within the backward pass.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/model/trainable.h"
#include "core/training/trainer/exchange/block_sums.h"
#include "core/training/trainer/processes.h"

namespace headscope::training {

class GradientExchange {
public:
    GradientExchange(const model::Trainable& model, Processes& processes, std::unique_ptr<BlockSums> sums,
                     std::int64_t block_bytes = std::int64_t{25} << 20U);
    /// The hooks of the model's leaves must not outlive it.
    ~GradientExchange();
    GradientExchange(const GradientExchange&) = delete;
    GradientExchange& operator=(const GradientExchange&) = delete;

    /// Before the backward pass that completes the gradients.
    void arm();
    /// After it: sends what no hook has sent, and returns when all blocks are sums.
    void finish();
    /// Instead of both, where something else than the model's gradients is to be summed: float32 of their shape, which
    /// is known only after the backward pass. Returns when all blocks are sums.
    void sum(const at::Tensor& flat);

    Processes& processes() { return processes_; }

private:
    class Hook;
    struct Block {
        std::int64_t begin = 0, end = 0;  ///< elements
        int leaves = 0, left = 0;         ///< in it; whose gradient is still to come
    };
    void leaf_done(std::int64_t offset, std::int64_t elements);
    void send_ready(bool all);

    const model::Trainable& model_;
    Processes& processes_;
    std::unique_ptr<BlockSums> sums_;
    std::vector<Block> blocks_;       ///< by place
    std::vector<std::size_t> order_;  ///< in which they are sent, in all processes alike
    std::size_t sent_ = 0;
    bool armed_ = false;
};

}  // namespace headscope::training
