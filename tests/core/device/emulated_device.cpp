// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/device/emulated_device.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <optional>

#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

namespace headscope::test {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);
const c10::Device kEmulated(c10::kPrivateUse1, 0);

/// Pages of tensors, PROT_NONE unless opened.
class ClosedPages {
public:
    void* take(std::size_t bytes) {
        const std::size_t size = (bytes + kPage - 1) / kPage * kPage;
        const std::lock_guard lock(mutex_);
        void* const place =
            ::mmap(nullptr, size, all_open_ > 0 ? kOpen : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (place == MAP_FAILED) throw std::bad_alloc();
        blocks_.emplace(static_cast<char*>(place), Block{size, 0});
        return place;
    }

    void give(void* place) {
        const std::lock_guard lock(mutex_);
        const auto block = blocks_.find(static_cast<char*>(place));
        ::munmap(place, block->second.size);
        blocks_.erase(block);
    }

    /// The block that starts at `place`; null is none.
    void open(const void* place, int step) {
        const std::lock_guard lock(mutex_);
        const auto block = blocks_.find(static_cast<const char*>(place));
        if (block == blocks_.end()) return;
        block->second.users += step;
        protect(*block);
    }

    void open_all(int step) {
        const std::lock_guard lock(mutex_);
        all_open_ += step;
        for (const auto& block : blocks_) protect(block);
    }

private:
    struct Block {
        std::size_t size;
        int users;
    };
    static constexpr std::size_t kPage = 4096;
    static constexpr int kOpen = PROT_READ | PROT_WRITE;

    void protect(const std::pair<const char* const, Block>& block) const {
        const bool open = all_open_ > 0 || block.second.users > 0;
        ::mprotect(const_cast<char*>(block.first), block.second.size, open ? kOpen : PROT_NONE);
    }

    std::mutex mutex_;
    std::map<const char*, Block> blocks_;
    int all_open_ = 0;
};

/// Never destroyed: tensors of static objects outlive it otherwise.
ClosedPages& pages() {
    static auto* const only = new ClosedPages;
    return *only;
}

/// The block that starts at `place` is open while this lives.
class OpenBlock {
public:
    explicit OpenBlock(const void* place) : place_(place) { pages().open(place_, 1); }
    ~OpenBlock() { pages().open(place_, -1); }
    OpenBlock(const OpenBlock&) = delete;
    OpenBlock& operator=(const OpenBlock&) = delete;

private:
    const void* place_;
};

std::atomic<std::int64_t> allocations = 0, pinned_requests = 0;
std::atomic<bool> pinned_offered = false;

class EmulatedAllocator final : public c10::Allocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override {
        ++allocations;
        void* const place = bytes == 0 ? nullptr : pages().take(bytes);
        return {place, place, &give, kEmulated};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &give; }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        const OpenBlock target(to), source(from);
        std::memcpy(to, from, bytes);
    }

private:
    static void give(void* place) {
        if (place != nullptr) pages().give(place);
    }
};

EmulatedAllocator allocator;
REGISTER_ALLOCATOR(c10::kPrivateUse1, &allocator);

/// One device, one stream, events that are always done: LibTorch's own guard without events fails in backward passes.
class EmulatedGuard final : public c10::impl::DeviceGuardImplInterface {
public:
    c10::DeviceType type() const override { return c10::kPrivateUse1; }
    c10::Device exchangeDevice(c10::Device) const override { return kEmulated; }
    c10::Device getDevice() const override { return kEmulated; }
    void setDevice(c10::Device) const override {}
    void uncheckedSetDevice(c10::Device) const noexcept override {}
    c10::Stream getStream(c10::Device) const override { return c10::Stream(c10::Stream::DEFAULT, kEmulated); }
    c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getStream(device); }
    c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
    c10::DeviceIndex deviceCount() const noexcept override { return 1; }
    void record(void** event, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {
        static char done = 0;
        *event = &done;
    }
    void block(void*, const c10::Stream&) const override {}
    bool queryEvent(void*) const override { return true; }
    void destroyEvent(void*, c10::DeviceIndex) const noexcept override {}
    void synchronizeEvent(void*) const override {}
    bool queryStream(const c10::Stream&) const override { return true; }
    void synchronizeStream(const c10::Stream&) const override {}
    void synchronizeDevice(c10::DeviceIndex) const override {}
    void* getStreamNativeHandle(c10::Stream) const override { return nullptr; }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, EmulatedGuard);

class EmulatedHooks final : public at::PrivateUse1HooksInterface {
public:
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
    const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
        return at::detail::getDefaultCPUGenerator();
    }
    c10::Allocator* getPinnedMemoryAllocator() const override {
        if (!pinned_offered) return PrivateUse1HooksInterface::getPinnedMemoryAllocator();  // throws
        ++pinned_requests;
        return c10::GetCPUAllocator();
    }
};

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
    return at::detail::empty_generic(sizes, &allocator, kKeys, type.value_or(at::kFloat), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> type,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
    return at::detail::empty_strided_generic(sizes, strides, &allocator, kKeys, type.value_or(at::kFloat));
}

/// The tensor itself, or a CPU tensor of the same memory.
at::Tensor on_host(const at::Tensor& tensor) {
    if (tensor.is_cpu()) return tensor;
    auto* const memory = static_cast<char*>(tensor.storage().mutable_data());
    return at::from_blob(memory + tensor.storage_offset() * static_cast<std::int64_t>(tensor.element_size()),
                         tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
    if (from.numel() == 0) return to;
    const OpenBlock source(from.storage().data()), target(to.storage().data());
    on_host(to).copy_(on_host(from));
    return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
    to.resize_(from.sizes());
    return copy_from(from, to, false);
}

at::Scalar local_scalar_dense(const at::Tensor& tensor) {
    return tensor.cpu().item();
}

const at::Tensor& resize(const at::Tensor& tensor, at::IntArrayRef sizes, std::optional<at::MemoryFormat>) {
    if (tensor.sizes() == sizes) return tensor;
    tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
    const std::size_t before = tensor.storage().nbytes();
    const auto bytes = static_cast<std::size_t>(tensor.storage_offset() + tensor.numel()) * tensor.element_size();
    if (before >= bytes) return tensor;
    c10::DataPtr memory = allocator.allocate(bytes);
    if (before > 0) allocator.copy_data(memory.get(), tensor.storage().data(), before);
    tensor.storage().set_data_ptr_noswap(std::move(memory));
    tensor.storage().set_nbytes(bytes);
    return tensor;
}

at::Tensor as_strided(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides,
                      std::optional<std::int64_t> offset) {
    return at::native::as_strided_tensorimpl(tensor, sizes, strides, offset);
}

/// cpu_fallback() itself copies from any device. As on CUDA, numbers and lists of indices may lie on the CPU.
void expect_emulated(const at::Tensor& tensor) {
    TORCH_CHECK(!tensor.defined() || tensor.dim() == 0 || tensor.device() == kEmulated,
                "Expected all tensors to be on the same device, but found at least two devices, ", kEmulated, " and ",
                tensor.device(), "!");
}

void on_processor(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
    for (const c10::IValue& argument : torch::jit::last(*stack, operation.schema().arguments().size())) {
        if (argument.isTensor()) expect_emulated(argument.toTensor());
        if (argument.isTensorList())
            for (const at::Tensor& tensor : argument.toTensorVector()) expect_emulated(tensor);
    }
    at::native::cpu_fallback(operation, stack);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
    library.impl("empty.memory_format", &empty);
    library.impl("empty_strided", &empty_strided);
    library.impl("_copy_from", &copy_from);
    library.impl("_copy_from_and_resize", &copy_from_and_resize);
    library.impl("_local_scalar_dense", &local_scalar_dense);
    library.impl("resize_", &resize);
    library.impl("as_strided", &as_strided);
    library.impl("view", &at::native::view);
    library.impl("_reshape_alias", &at::native::_reshape_alias);
    library.impl("unfold", &at::native::unfold);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_processor>());
}

}  // namespace

c10::Device emulated_device() {
    static EmulatedHooks hooks;
    static const bool registered = [] {
        c10::register_privateuse1_backend("emulated");
        at::RegisterPrivateUse1HooksInterface(&hooks);
        return true;
    }();
    static_cast<void>(registered);
    return kEmulated;
}

std::int64_t device_allocations() {
    return allocations;
}

OfferPinnedMemory::OfferPinnedMemory() {
    pinned_requests = 0;
    pinned_offered = true;
}

OfferPinnedMemory::~OfferPinnedMemory() {
    pinned_offered = false;
}

std::int64_t OfferPinnedMemory::requests() const {
    return pinned_requests;
}

OpenDeviceMemory::OpenDeviceMemory() {
    pages().open_all(1);
}

OpenDeviceMemory::~OpenDeviceMemory() {
    pages().open_all(-1);
}

}  // namespace headscope::test
