// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>

#include "core/training/trainer/exchange/block_sums.h"

namespace headscope::training {

struct ChosenSums {
    std::unique_ptr<BlockSums> sums;
    std::string text;  ///< the choice and its reason, in process 0; empty if no process computes on a device
};

/// Sums of gradients on `device`: by NCCL if each process has a GPU of its own and the same version of the library,
/// else in memory of the processor. All processes call it together. Errors: those of NcclSums.
ChosenSums choose_sums(Processes& processes, const at::Device& device);

}  // namespace headscope::training
