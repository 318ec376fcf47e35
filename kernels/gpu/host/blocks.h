// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Device memory between calls. Blocks that a call returns are kept for the next calls: the driver's allocation is slow,
// and its release waits for the whole device. All work runs on the default stream of one device, so the work of a
// block's next user starts when that of the last one is done. Threads: any.

#include <cstddef>

#include "kernels/gpu/plugin.h"

namespace headscope::kernels::gpu {

/// Bytes that are kept at most, a part of what the memory plan reserves (core/model/load/model_device.cpp).
inline constexpr std::size_t kMostKeptBytes = std::size_t{128} << 20U;
/// Larger blocks are released at once.
inline constexpr std::size_t kLargestKeptBlock = kMostKeptBytes / 2;

/// Bytes of the block for a request: more than requested, by an eighth or up to 512 bytes, if the block is kept later.
std::size_t block_bytes(const HsPlugin& library, std::size_t requested);

/// A kept block of block_bytes(), or a new one, on the calling thread's device. On a full device releases kept blocks,
/// then LibTorch's cache, and tries again. Null if the outcome is a failure.
void* take_block(const HsPlugin& library, int device, std::size_t bytes, HsOutcome& outcome);

/// Keeps a block of take_block(), or releases it. Queued work on the default stream may still use it.
void return_block(const HsPlugin& library, int device, void* block, std::size_t bytes) noexcept;

/// Releases what is kept. Returns false if nothing was.
bool release_kept_blocks();

}  // namespace headscope::kernels::gpu
