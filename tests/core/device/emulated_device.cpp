// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/device/emulated_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

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
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include "tests/core/device/stream_order.h"

namespace headscope::test {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);
const c10::Device kEmulated(c10::kPrivateUse1, 0);

/// Never destroyed, as pages().
StreamOrder& order() {
    static auto* const only = new StreamOrder;
    return *only;
}

thread_local c10::StreamId current_stream = 0;
thread_local StreamOrder::Before seen_done;  ///< work that this thread of the processor waited for
std::atomic<bool> has_streams{true}, has_pinned{true};
std::atomic<std::int64_t> copies_aside{0}, operators{0}, waits{0}, allocations{0}, pinned_requests{0};

/// The present stream uses fresh memory of the device.
void use(const void* block) {
    order().wait(current_stream, seen_done);
    order().use(current_stream, block);
}

/// The present stream uses numbers of a tensor, which is not empty.
void use(const at::Tensor& tensor) {
    const auto size = static_cast<std::size_t>(tensor.element_size());
    const std::size_t begin = static_cast<std::size_t>(tensor.storage_offset()) * size;
    order().wait(current_stream, seen_done);
    order().use(current_stream, tensor.storage().data(), begin,
                begin + at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), size));
}

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

    std::int64_t bytes() {
        const std::lock_guard lock(mutex_);
        std::size_t sum = 0;
        for (const auto& [place, block] : blocks_) sum += block.size;
        return static_cast<std::int64_t>(sum);
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

class EmulatedAllocator final : public c10::Allocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override {
        ++allocations;
        void* const place = bytes == 0 ? nullptr : pages().take(bytes);
        // As CUDA's allocator: memory that earlier work of the present stream may still use.
        if (place != nullptr) use(place);
        return {place, place, &give, kEmulated};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &give; }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        const OpenBlock target(to), source(from);
        std::memcpy(to, from, bytes);
    }

private:
    static void give(void* place) {
        if (place == nullptr) return;
        order().forget(place);
        pages().give(place);
    }
};

EmulatedAllocator allocator;
REGISTER_ALLOCATOR(c10::kPrivateUse1, &allocator);

/// Memory of the processor that it may not write after a copy to the device until it has waited for a later event or
/// for the stream.
class PinnedPages final : public c10::Allocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override {
        if (bytes == 0) return {nullptr, nullptr, &give, c10::kCPU};
        void* const place = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (place == MAP_FAILED) throw std::bad_alloc();
        const std::lock_guard lock(mutex());
        blocks().emplace(place, Block{bytes, {}});
        return {place, place, &give, c10::kCPU};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &give; }
    void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }

    static bool has(const void* place) {
        const std::lock_guard lock(mutex());
        return blocks().contains(const_cast<void*>(place));
    }
    /// `copy`: StreamOrder::record() after it.
    static void close(const void* place, const StreamOrder::Before& copy) {
        const std::lock_guard lock(mutex());
        const auto block = blocks().find(const_cast<void*>(place));
        if (block == blocks().end()) return;
        block->second.copy = copy;
        ::mprotect(block->first, block->second.size, PROT_READ);
    }
    /// The device writes there, in the order of its streams.
    static void open_for_device(const void* place) {
        const std::lock_guard lock(mutex());
        const auto block = blocks().find(const_cast<void*>(place));
        if (block != blocks().end()) ::mprotect(block->first, block->second.size, PROT_READ | PROT_WRITE);
    }
    /// The processor waited for work that came before `event`.
    static void open(const StreamOrder::Before& event) {
        const std::lock_guard lock(mutex());
        for (auto& [place, block] : blocks()) {
            const auto is_done = [&event](const std::pair<const std::int64_t, std::uint64_t>& uses) {
                const auto done = event.find(uses.first);
                return done != event.end() && done->second >= uses.second;
            };
            if (std::all_of(block.copy.begin(), block.copy.end(), is_done))
                ::mprotect(place, block.size, PROT_READ | PROT_WRITE);
        }
    }

private:
    struct Block {
        std::size_t size;
        StreamOrder::Before copy;
    };

    static void give(void* place) {
        if (place == nullptr) return;
        const std::lock_guard lock(mutex());
        const auto block = blocks().find(place);
        ::munmap(place, block->second.size);
        blocks().erase(block);
    }
    /// Never destroyed, as pages().
    static std::mutex& mutex() {
        static auto* const only = new std::mutex;
        return *only;
    }
    static std::map<void*, Block>& blocks() {
        static auto* const only = new std::map<void*, Block>;
        return *only;
    }
};

PinnedPages pinned_pages;

/// One device, whose work is done at once; its order is checked (StreamOrder).
class EmulatedGuard final : public c10::impl::DeviceGuardImplInterface {
public:
    c10::DeviceType type() const override { return c10::kPrivateUse1; }
    c10::Device exchangeDevice(c10::Device) const override { return kEmulated; }
    c10::Device getDevice() const override { return kEmulated; }
    void setDevice(c10::Device) const override {}
    void uncheckedSetDevice(c10::Device) const noexcept override {}
    c10::Stream getStream(c10::Device) const override { return stream_of(current_stream); }
    c10::Stream getDefaultStream(c10::Device) const override { return stream_of(0); }
    c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
        TORCH_CHECK(has_streams.load(), "the emulated device has one stream");
        return stream_of(order().new_stream());
    }
    c10::Stream exchangeStream(c10::Stream next) const override {
        return stream_of(std::exchange(current_stream, next.id()));
    }
    c10::DeviceIndex deviceCount() const noexcept override { return 1; }
    void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
        if (*event == nullptr) *event = new StreamOrder::Before;
        before(*event) = order().record(stream.id());
    }
    void block(void* event, const c10::Stream& stream) const override {
        if (event != nullptr) order().wait(stream.id(), before(event));
    }
    bool queryEvent(void*) const override { return true; }
    void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
        delete static_cast<StreamOrder::Before*>(event);
    }
    void synchronizeEvent(void* event) const override {
        if (event != nullptr) see(before(event));
    }
    bool queryStream(const c10::Stream&) const override { return true; }
    void synchronizeStream(const c10::Stream& stream) const override { see(order().record(stream.id())); }
    void synchronizeDevice(c10::DeviceIndex) const override { ++waits; }
    void* getStreamNativeHandle(c10::Stream) const override { return nullptr; }

private:
    static c10::Stream stream_of(c10::StreamId id) { return c10::Stream(c10::Stream::UNSAFE, kEmulated, id); }
    static void see(const StreamOrder::Before& event) {
        for (const auto& [stream, count] : event) seen_done[stream] = std::max(seen_done[stream], count);
        PinnedPages::open(event);
    }
    static StreamOrder::Before& before(void* event) { return *static_cast<StreamOrder::Before*>(event); }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, EmulatedGuard);

class EmulatedHooks final : public at::PrivateUse1HooksInterface {
public:
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
    bool isPinnedPtr(const void* place) const override { return PinnedPages::has(place); }
    const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
        return at::detail::getDefaultCPUGenerator();
    }
    c10::Allocator* getPinnedMemoryAllocator() const override {
        if (!has_pinned) return PrivateUse1HooksInterface::getPinnedMemoryAllocator();  // throws
        ++pinned_requests;
        return &pinned_pages;
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

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
    if (from.numel() == 0) return to;
    for (const at::Tensor* tensor : {&from, &to})
        if (!tensor->is_cpu()) use(*tensor);
    if (current_stream != 0) ++copies_aside;
    if (to.is_cpu()) PinnedPages::open_for_device(to.storage().data());
    const OpenBlock source(from.storage().data()), target(to.storage().data());
    on_host(to).copy_(on_host(from));
    if (non_blocking && from.is_cpu()) PinnedPages::close(from.storage().data(), order().record(current_stream));
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
    ++operators;
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

EmulatedState emulated_state() {
    return {pages().bytes(), copies_aside, operators, waits, allocations, pinned_requests};
}

OneStream::OneStream() {
    has_streams = false;
}

OneStream::~OneStream() {
    has_streams = true;
}

NoPinnedMemory::NoPinnedMemory() {
    has_pinned = false;
}

NoPinnedMemory::~NoPinnedMemory() {
    has_pinned = true;
}

OpenDeviceMemory::OpenDeviceMemory() {
    pages().open_all(1);
}

OpenDeviceMemory::~OpenDeviceMemory() {
    pages().open_all(-1);
}

}  // namespace headscope::test
