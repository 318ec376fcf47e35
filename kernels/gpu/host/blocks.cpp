// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/gpu/host/blocks.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <mutex>
#include <vector>

#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include "kernels/gpu/libraries.h"

namespace headscope::kernels {
namespace gpu {
namespace {

constexpr std::size_t kMostBlocks = 512;
constexpr std::size_t kLeastBlock = 512;  ///< bytes

/// Kept blocks of one device, in the order of their return.
class KeptBlocks {
public:
    KeptBlocks() { blocks_.reserve(kMostBlocks + 1); }

    /// The last block of these bytes that was returned; null: none.
    void* take(const HsPlugin& library, int device, std::size_t bytes) {
        const std::lock_guard lock(mutex_);
        if (!belongs_to(library, device)) return nullptr;
        const auto at = std::find_if(blocks_.rbegin(), blocks_.rend(),
                                     [bytes](const Block& block) { return block.bytes == bytes; });
        if (at == blocks_.rend()) return nullptr;
        void* const memory = at->memory;
        blocks_.erase(std::next(at).base());
        bytes_ -= bytes;
        return memory;
    }

    /// Releases the oldest blocks while the limits are exceeded.
    void add(const HsPlugin& library, int device, void* memory, std::size_t bytes) {
        const std::lock_guard lock(mutex_);
        if (!belongs_to(library, device)) {
            release_all();
            library_ = &library;
            device_ = device;
            select();
        }
        blocks_.push_back({memory, bytes});
        bytes_ += bytes;
        while (bytes_ > kMostKeptBytes || blocks_.size() > kMostBlocks) {
            library_->release(blocks_.front().memory);
            bytes_ -= blocks_.front().bytes;
            blocks_.erase(blocks_.begin());
        }
    }

    /// Returns false if there is nothing to release.
    bool clear() {
        const std::lock_guard lock(mutex_);
        if (blocks_.empty()) return false;
        release_all();
        return true;
    }

private:
    struct Block {
        void* memory;
        std::size_t bytes;
    };

    bool belongs_to(const HsPlugin& library, int device) const { return library_ == &library && device_ == device; }

    void select() const {
        HsOutcome outcome{};
        library_->select(device_, &outcome);
    }

    void release_all() {
        if (blocks_.empty()) return;
        select();
        for (const Block& block : blocks_) library_->release(block.memory);
        blocks_.clear();
        bytes_ = 0;
    }

    std::mutex mutex_;
    const HsPlugin* library_ = nullptr;
    int device_ = 0;
    std::vector<Block> blocks_;
    std::size_t bytes_ = 0;
};

/// Never destroyed: the driver ends first, and releases all memory of the process.
KeptBlocks& kept_blocks() {
    static KeptBlocks& blocks = *new KeptBlocks;
    return blocks;
}

/// LibTorch's allocator keeps the memory of tensors that are gone. Returns false if LibTorch uses no GPU.
bool release_torch_cache() {
    try {
        // LibTorch calls AMD's GPUs cuda, too.
        auto* const allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(c10::DeviceType::CUDA));
        if (allocator == nullptr || !allocator->initialized()) return false;
        allocator->emptyCache();
        return true;
    } catch (const c10::Error&) {
        return false;  // no allocator of GPUs, or a device that failed
    }
}

}  // namespace

std::size_t block_bytes(const HsPlugin& library, std::size_t requested) {
    if (library.reuses_memory == 0 || requested > kLargestKeptBlock) return requested;
    const std::size_t step = std::max(kLeastBlock, std::bit_floor(requested) / 8);
    return (requested + step - 1) / step * step;
}

void* take_block(const HsPlugin& library, int device, std::size_t bytes, HsOutcome& outcome) {
    outcome = {};
    if (void* const kept = kept_blocks().take(library, device, bytes)) return kept;
    void* block = library.allocate(bytes, &outcome);
    if (library.reuses_memory == 0) return block;
    for (bool (*const make_room)() : {&release_kept_blocks, &release_torch_cache}) {
        if (outcome.status != HS_MEMORY || !make_room()) continue;
        library.select(device, &outcome);  // LibTorch may have changed the thread's device
        if (outcome.status == HS_DONE) block = library.allocate(bytes, &outcome);
    }
    return block;
}

void return_block(const HsPlugin& library, int device, void* block, std::size_t bytes) noexcept {
    if (library.reuses_memory == 0 || bytes > kLargestKeptBlock) return library.release(block);
    kept_blocks().add(library, device, block, bytes);
}

bool release_kept_blocks() {
    return kept_blocks().clear();
}

}  // namespace gpu

void release_unused_gpu_memory() {
    gpu::release_kept_blocks();
    gpu::release_torch_cache();
}

}  // namespace headscope::kernels
