// SPDX-License-Identifier: GPL-3.0-or-later
// The device of other tests: results of the CPU, memory closed to the host.
#include "tests/catch_with_torch.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/TensorIndexing.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "tests/core/device/emulated_device.h"

using namespace headscope;
using test::emulated_device;

namespace {

at::Tensor noise(std::vector<std::int64_t> shape, std::uint64_t seed) {
    return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed));
}

at::TensorOptions gpu_part() {
    return at::TensorOptions(emulated_device());
}

/// Loss and gradient of a product, views, softmax and a sum.
std::pair<double, at::Tensor> loss_and_gradient(c10::Device device) {
    const at::Tensor a = noise({64, 32}, 1).to(device).requires_grad_(true), b = noise({32, 16}, 2).to(device);
    const at::Tensor c = at::full({16}, 0.5, at::TensorOptions(device));
    const at::Tensor y = at::silu(a.matmul(b) + c);
    const at::Tensor weights = at::softmax(y.view({4, 16, 16}).transpose(1, 2), -1);
    const at::Tensor loss = weights.narrow(2, 3, 5).pow(2).sum();
    loss.backward();
    REQUIRE(a.grad().device() == device);
    return {loss.item<double>(), a.grad().cpu()};
}

std::string refusal(const auto& work) {
    try {
        work();
    } catch (const c10::Error& error) {
        return error.what_without_backtrace();
    }
    return "no refusal";
}

/// The signal that ends a child process that runs `work`; 0 if it ends by itself.
int signal_of(const auto& work) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_CORE, &none);
        ::signal(SIGSEGV, SIG_DFL);
        work();
        ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("Products, softmax, views and a backward pass on the emulated device equal the CPU's", "[device]") {
    CHECK(c10::Device(emulated_device()).str() == "emulated:0");
    const auto [loss, gradient] = loss_and_gradient(emulated_device());
    const auto [expected_loss, expected] = loss_and_gradient(at::kCPU);
    const double largest = expected.abs().max().item<double>();
    REQUIRE(largest > 0.1);
    // Float32 sums of 64 terms, in another order where copies of views are contiguous.
    constexpr double kError = 64 * 0x1p-24;
    CHECK(loss == Approx(expected_loss).epsilon(kError));
    CHECK((gradient - expected).abs().max().item<double>() < kError * largest);
}

TEST_CASE("Views of the emulated device share its memory", "[device]") {
    const at::Tensor host = noise({6, 8}, 3), there = host.to(emulated_device());
    there.narrow(0, 1, 2).t().fill_(2);
    there.view({48}).slice(0, 40).zero_();
    host.narrow(0, 1, 2).fill_(2);
    host.narrow(0, 5, 1).zero_();
    CHECK(there.cpu().equal(host));
    CHECK(there.unfold(1, 4, 2).cpu().equal(host.unfold(1, 4, 2)));
    CHECK(there.index({at::arange(3)}).cpu().equal(host.narrow(0, 0, 3)));
    CHECK(at::cat({there, there}, 1).cpu().equal(at::cat({host, host}, 1)));
    const at::Tensor grown = at::empty({0}, gpu_part());
    grown.resize_({5}).fill_(3).resize_({2, 4});
    CHECK(grown.flatten().narrow(0, 0, 5).cpu().equal(at::full({5}, 3.0)));
    CHECK(at::empty({0, 4}, gpu_part()).sum().item<float>() == 0);
    const at::Tensor counts = at::zeros({3}, gpu_part());
    counts.index_put_({at::arange(2).to(emulated_device())}, at::ones({2}, gpu_part()), true);
    CHECK(counts.cpu().equal(at::arange(3).lt(2).to(at::kFloat)));
}

TEST_CASE("Tensors of the emulated device and of the CPU do not mix", "[device]") {
    const at::Tensor host = at::ones({4, 4}), there = host.to(emulated_device());
    const std::string expected =
        "Expected all tensors to be on the same device, but found at least two devices, "
        "emulated:0 and cpu!";
    CHECK(refusal([&] { there + host; }).starts_with(expected));
    CHECK(refusal([&] { there.matmul(host); }).starts_with(expected));
    CHECK(refusal([&] { at::cat({there, host}); }).starts_with(expected));
    CHECK((there + at::ones({})).cpu().equal(host * 2));  // a number may lie anywhere, as on CUDA
}

TEST_CASE("The host reads memory of the emulated device only where it is opened", "[device]") {
    const at::Tensor there = at::full({1000}, 7.0, gpu_part());
    there.sum().item<float>();  // closed again after an operator
    const auto* memory = there.const_data_ptr<float>();
    float found = 0;
    CHECK(signal_of([&] { found = *static_cast<const volatile float*>(memory); }) == SIGSEGV);
    CHECK(signal_of([&] { *static_cast<volatile float*>(there.mutable_data_ptr<float>() + 999) = 1; }) == SIGSEGV);
    {
        const test::OpenDeviceMemory open;
        CHECK(signal_of([&] { found = *static_cast<const volatile float*>(memory); }) == 0);
        CHECK(memory[999] == 7);
    }
    CHECK(signal_of([&] { found = *static_cast<const volatile float*>(memory); }) == SIGSEGV);
}

TEST_CASE("Streams of the emulated device use memory in the order of events alone", "[device]") {
    const c10::impl::VirtualGuardImpl guard(emulated_device().type());
    const c10::Stream first = guard.getStream(emulated_device());
    const c10::Stream second = guard.getStreamFromGlobalPool(emulated_device());
    REQUIRE(first != second);
    const std::string expected =
        "stream " + std::to_string(second.id()) + " uses memory that stream 0 uses without an ";
    const at::Tensor host = at::full({8}, 3.0), there = at::zeros({8}, gpu_part()), other = at::zeros({8}, gpu_part());
    const auto copy = [&](const at::Tensor& to) {
        const c10::StreamGuard on_second(second);
        to.copy_(host, true);
    };
    const std::int64_t before = test::emulated_state().copies_aside;
    CHECK(refusal([&] { copy(there); }).starts_with(expected));
    c10::Event made(emulated_device().type()), copied(emulated_device().type());
    made.record(first);
    made.block(second);
    copy(there);
    CHECK(test::emulated_state().copies_aside == before + 1);
    CHECK(refusal([&] { there.cpu(); }).starts_with("stream 0 uses memory that stream "));
    copied.record(second);
    CHECK(refusal([&] { there.cpu(); }).starts_with("stream 0 uses memory that stream "));  // recorded, not waited for
    copied.block(first);
    CHECK(there.cpu().equal(host));
    // The use after the event of `made` is not covered by it.
    made.block(second);
    CHECK(refusal([&] { copy(there); }).starts_with(expected));
    copy(other);
    copied.block(first);  // as it was recorded, before the second copy
    CHECK(refusal([&] { other.cpu(); }).starts_with("stream 0 uses memory that stream "));
    {
        const test::OneStream one;
        const auto take = [&] { guard.getStreamFromGlobalPool(emulated_device()); };
        CHECK(refusal(take).starts_with("the emulated device has one stream"));
    }
}

TEST_CASE("Streams of the emulated device use different parts of memory in any order", "[device]") {
    const c10::impl::VirtualGuardImpl guard(emulated_device().type());
    const c10::Stream second = guard.getStreamFromGlobalPool(emulated_device());
    const at::Tensor host = at::full({3}, 3.0), there = at::zeros({8}, gpu_part());
    c10::Event made(emulated_device().type());
    made.record(guard.getStream(emulated_device()));
    made.block(second);
    {
        const c10::StreamGuard on_second(second);
        there.narrow(0, 2, 3).copy_(host, true);
    }
    CHECK(there.narrow(0, 0, 2).cpu().equal(at::zeros({2})));
    CHECK(there.narrow(0, 5, 3).cpu().equal(at::zeros({3})));
    for (const std::int64_t begin : {1, 4}) {
        INFO("begin " << begin);
        CHECK(refusal([&] { there.narrow(0, begin, 2).cpu(); }).starts_with("stream 0 uses memory that stream "));
    }
}

TEST_CASE("Pinned memory is closed to writes until the host has waited for the copy", "[device]") {
    at::Tensor host =
        at::detail::empty_generic({8}, at::globalContext().getPinnedMemoryAllocator(emulated_device().type()),
                                  c10::DispatchKeySet(c10::DispatchKey::CPU), at::kFloat, std::nullopt);
    host.fill_(3);
    const at::Tensor there = at::zeros({8}, gpu_part());
    const c10::impl::VirtualGuardImpl guard(emulated_device().type());
    c10::Event early(emulated_device().type()), late(emulated_device().type());
    early.record(guard.getStream(emulated_device()));
    there.copy_(host, true);
    late.record(guard.getStream(emulated_device()));
    const auto overwrite = [&] { *static_cast<volatile float*>(host.mutable_data_ptr<float>()) = 1; };
    CHECK(signal_of(overwrite) == SIGSEGV);
    early.synchronize();
    CHECK(signal_of(overwrite) == SIGSEGV);
    late.synchronize();
    CHECK(signal_of(overwrite) == 0);
    CHECK(there.cpu().equal(at::full({8}, 3.0)));
}
