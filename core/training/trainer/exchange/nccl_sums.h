// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Sums of gradients on GPUs, by NCCL, which exchanges them between the GPUs' memories. The order of additions is that
// of its rings and trees, so that other topologies give other bits; bfloat16 is rounded at each addition.

#include <string>

#include "core/training/trainer/exchange/block_sums.h"
#include "core/training/trainer/exchange/nccl.h"

namespace headscope::training {

/// A failure in one process ends all: Error in process 0, which reports it, Stopped in the others.
class NcclSums final : public BlockSums {
public:
    /// `nccl` is open. All processes call it together, each with another GPU.
    NcclSums(Processes& processes, const at::Device& device, NcclLibrary nccl);
    ~NcclSums() override;
    NcclSums(const NcclSums&) = delete;
    NcclSums& operator=(const NcclSums&) = delete;

    void start(const at::Tensor& flat, std::int64_t begin, std::int64_t end) override;
    void finish(const at::Tensor& flat) override;

private:
    /// Returns if `result` is 0 in all processes; else leaves them.
    void expect_success(const std::string& call, int result);

    Processes& processes_;
    NcclLibrary nccl_;
    c10::Stream stream_;  ///< of the sums
    NcclCommunicator* communicator_ = nullptr;
    int failure_ = 0;  ///< the first of this process since finish()
};

}  // namespace headscope::training
