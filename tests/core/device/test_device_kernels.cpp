// SPDX-License-Identifier: GPL-3.0-or-later
// Row operators, convolution and cross-entropy of tensors on a device run the GPU library's kernels there: on the
// emulated device the emulator's, with the results of the processor's and without operators of LibTorch.
#include "tests/catch_with_torch.h"

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include "core/mixers/shared/recurrence.h"
#include "core/model/device.h"
#include "core/model/heads/head_loss.h"
#include "core/model/training_ops.h"
#include "tests/core/device/emulated_device.h"
#include "tests/core/device/on_kernels.h"

using namespace headscope;
using test::emulated_device;
using test::OnKernels;

namespace {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(const Tensors&)>;

at::Tensor numbers(at::IntArrayRef sizes, at::ScalarType type, double phase) {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    return (at::arange(count, at::kDouble) * 0.7 + phase).sin().view(sizes).to(type);
}

struct Results {
    Tensors tensors;             ///< the result and the gradients of all operands, on the processor
    std::int64_t operators = 0;  ///< of LibTorch, on the emulated device, forward
};

Results results(const Function& function, const Tensors& operands, c10::Device device) {
    Tensors inputs;
    for (const at::Tensor& operand : operands)
        inputs.push_back(operand.to(device).detach().clone().requires_grad_(true));
    Results found;
    const std::int64_t before = test::emulated_state().operators;
    const at::Tensor y = function(inputs);
    found.operators = test::emulated_state().operators - before;
    REQUIRE(y.device() == device);
    found.tensors.push_back(y.detach().cpu());
    y.backward(numbers(y.sizes(), y.scalar_type(), 2).to(device));
    for (const at::Tensor& input : inputs) found.tensors.push_back(input.grad().cpu());
    return found;
}

/// Sums of some hundred products, in another order; a rounding to bfloat16.
double tolerance(at::ScalarType type) {
    return type == at::kFloat ? 256 * 0x1p-24 : 0x1p-7;
}

void check_close(const at::Tensor& found, const at::Tensor& expected, double error) {
    REQUIRE(found.sizes() == expected.sizes());
    REQUIRE(found.scalar_type() == expected.scalar_type());
    const at::Tensor wide = expected.to(at::kDouble);
    const auto largest = wide.abs().max().item<double>();
    REQUIRE(largest > 0.01);
    CHECK((found.to(at::kDouble) - wide).abs().max().item<double>() <= error * largest);
}

void check_kernels(const Function& function, const Tensors& operands) {
    const at::ScalarType type = operands.front().scalar_type();
    INFO(at::toString(type));
    const Results expected = results(function, operands, at::kCPU);
    const OnKernels forced;
    const Results found = results(function, operands, emulated_device());
    CHECK(found.operators == 0);
    REQUIRE(found.tensors.size() == expected.tensors.size());
    for (std::size_t n = 0; n < found.tensors.size(); ++n) {
        INFO("tensor " << n);
        check_close(found.tensors[n], expected.tensors[n], tolerance(type));
    }
}

constexpr at::ScalarType kTypes[] = {at::kFloat, at::kBFloat16};

}  // namespace

TEST_CASE("Kernels take a device's tensors only if its backend is chosen", "[device][kernels]") {
    const at::Tensor there = numbers({4}, at::kFloat, 0).to(emulated_device()).requires_grad_(true);
    CHECK_FALSE(model::in_kernel_memory(there));
    CHECK_FALSE(model::fused(there));
    CHECK(model::for_kernel(there).is_cpu());
    const OnKernels forced;
    CHECK(model::in_kernel_memory(there));
    CHECK(model::in_kernel_memory(there.detach().cpu()));
    CHECK(model::fused(there));
    CHECK_FALSE(model::fused_on_processor(there));
    CHECK(model::for_kernel(there).is_same(there));
}

TEST_CASE("RMS norms, gated SiLU and rotations of a device are kernels", "[device][kernels]") {
    for (const at::ScalarType type : kTypes) {
        for (const std::int64_t size : {1, 63, 64, 65}) {
            INFO(size);
            check_kernels([](const Tensors& t) { return model::trained_rms_norm(t.at(0), t.at(1), 1e-3, 0.5); },
                          {numbers({3, 5, size}, type, 0), numbers({size}, type, 1)});
            check_kernels([](const Tensors& t) { return model::trained_gated_silu(t.at(0)); },
                          {numbers({7, 2 * size}, type, 0)});
        }
        for (const bool interleaved : {false, true}) {
            const at::Tensor cosine = numbers({9, 3}, type, 0.5), sine = numbers({9, 3}, type, 1.5);
            const at::Tensor cosine_there = cosine.to(emulated_device()), sine_there = sine.to(emulated_device());
            check_kernels(
                [&](const Tensors& t) {
                    const bool here = t.at(0).is_cpu();
                    return model::trained_rotation(t.at(0), here ? cosine : cosine_there, here ? sine : sine_there, 6,
                                                   interleaved);
                },
                {numbers({2, 9, 3, 10}, type, 0)});
        }
    }
}

TEST_CASE("Short convolutions of a device are kernels, with a state too", "[device][kernels]") {
    for (const at::ScalarType type : kTypes) {
        for (const bool plain : {false, true}) {
            INFO(at::toString(type) << ", plain " << plain);
            const at::Tensor x = numbers({2, 19, 5}, type, 0);
            const at::Tensor weight = numbers({5, 4}, type, 1), bias = numbers({5}, type, 2);
            check_kernels(
                [plain](const Tensors& t) { return model::trained_convolution(t.at(0), t.at(1), t.at(2), plain); },
                {x, weight, bias});
            const auto continued = [&](c10::Device device) {
                at::Tensor before;
                Tensors outputs;
                const at::Tensor all = x.to(device), taps = weight.to(device), offset = bias.to(device);
                for (const auto& [first, count] : {std::pair(0, 2), std::pair(2, 1), std::pair(3, 16)}) {
                    outputs.push_back(
                        mixers::short_convolution(all.narrow(1, first, count), taps, offset, &before, plain).cpu());
                }
                outputs.push_back(before.cpu());
                return outputs;
            };
            const Tensors expected = continued(at::kCPU);
            const std::int64_t begin = test::emulated_state().operators;
            continued(emulated_device());
            const std::int64_t by_libtorch = test::emulated_state().operators - begin;
            const OnKernels forced;
            const Tensors found = continued(emulated_device());
            CHECK(test::emulated_state().operators - begin - by_libtorch < by_libtorch);
            for (std::size_t n = 0; n < found.size(); ++n) check_close(found[n], expected[n], tolerance(type));
        }
    }
}

TEST_CASE("A head's cross-entropy on a device is a kernel", "[device][kernels]") {
    const at::Tensor targets = at::tensor(std::vector<std::int64_t>{3, -1, 0, 69, 8, 8, -1}, at::kLong);
    for (const at::ScalarType type : kTypes) {
        for (const double soft_cap : {0.0, 2.0}) {
            INFO(at::toString(type) << ", soft cap " << soft_cap);
            struct Found {
                model::LossSum loss;
                Tensors gradients;
                std::int64_t operators;
            };
            const auto loss_on = [&](c10::Device device) {
                const auto operand = [&](at::IntArrayRef sizes, double phase) {
                    return numbers(sizes, type, phase).to(device).detach().requires_grad_(true);
                };
                const at::Tensor hidden = operand({7, 12}, 0), weight = operand({70, 12}, 1), bias = operand({70}, 2);
                const std::int64_t before = test::emulated_state().operators;
                Found found{model::head_loss(hidden, {weight, bias, soft_cap}, targets, {1e-2, 3}), {}, 0};
                found.operators = test::emulated_state().operators - before;
                found.loss.sum.backward();
                for (const at::Tensor& one : {hidden, weight, bias}) found.gradients.push_back(one.grad().cpu());
                return found;
            };
            const Found expected = loss_on(at::kCPU), by_libtorch = loss_on(emulated_device());
            const OnKernels forced;
            const Found found = loss_on(emulated_device());
            CHECK(found.operators < by_libtorch.operators);
            CHECK(found.loss.rows == 5);
            CHECK(found.loss.correct == expected.loss.correct);
            CHECK(found.loss.cross_entropy.value() ==
                  Approx(expected.loss.cross_entropy.value()).epsilon(tolerance(type)));
            CHECK(found.loss.z_loss == Approx(expected.loss.z_loss).epsilon(tolerance(type)));
            for (std::size_t n = 0; n < found.gradients.size(); ++n) {
                INFO("gradient " << n);
                check_close(found.gradients[n], expected.gradients[n], 2 * tolerance(type));
            }
        }
    }
}
