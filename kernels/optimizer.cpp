// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/optimizer.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/dense/optimizer.h"
#include "kernels/cpu/flush_denormals.h"
#include "kernels/operators.h"
#include "kernels/parallel.h"

namespace headscope::kernels {
namespace {

constexpr std::int64_t kPiece = 1 << 16;  // elements; fixed, so that sums do not depend on the number of threads

void expect(bool condition, const char* where, const std::string& expected, const std::string& found) {
    if (!condition) throw Error(where, expected, found);
}

void check(const FlatParameters& p, const AdamWSettings& s) {
    expect(p.size >= 0 && p.decayed >= 0 && p.decayed <= p.size, "decayed parameters", "0 to " + std::to_string(p.size),
           std::to_string(p.decayed));
    const bool there = p.weights != nullptr && p.gradients != nullptr && p.first != nullptr && p.second != nullptr;
    expect(p.size == 0 || there, "parameters", "weights, gradients and both means", "a null pointer");
    const bool single = p.type == ElementType::float32;
    expect(p.size == 0 || single == (p.master == nullptr), "master weights",
           "some with bfloat16 weights, none with float32", single ? "some with float32" : "none with bfloat16");
    const auto number = [](const char* where, double value, double low, double high) {
        expect(std::isfinite(value) && value >= low && value <= high, where, "a finite number in its range",
               std::to_string(value));
    };
    number("learning rate", s.rate, 0.0, 1e6);
    number("beta1", s.beta1, 0.0, 1.0 - 1e-12);
    number("beta2", s.beta2, 0.0, 1.0 - 1e-12);
    number("epsilon", s.epsilon, 0.0, 1e6);
    number("weight decay", s.decay, 0.0, 1e6);
    number("gradient scale", s.gradient_scale, -1e30, 1e30);
    expect(s.step >= 1, "step", "1 or more", std::to_string(s.step));
}

std::int64_t pieces_of(std::int64_t size) {
    return (size + kPiece - 1) / kPiece;
}

}  // namespace

void adamw_step(const FlatParameters& parameters, const AdamWSettings& settings, Device device) {
    check(parameters, settings);
    if (device == Device::gpu) return adamw_step_gpu(parameters, settings, device);
    backend_for(Device::cpu);  // HEADSCOPE_KERNELS is heard before the first SIMD call
    const AdamWSettings& s = settings;
    const auto steps = static_cast<double>(s.step);
    const double first_correction = 1.0 - std::pow(s.beta1, steps);
    const double second_correction = 1.0 - std::pow(s.beta2, steps);
    const cpu::AdamWFactors factors{static_cast<float>(s.gradient_scale),
                                    static_cast<float>(s.beta1),
                                    static_cast<float>(1.0 - s.beta1),
                                    static_cast<float>(s.beta2),
                                    static_cast<float>(1.0 - s.beta2),
                                    static_cast<float>(s.rate / first_correction),
                                    static_cast<float>(1.0 / std::sqrt(second_correction)),
                                    static_cast<float>(s.epsilon),
                                    static_cast<float>(1.0 - s.rate * s.decay),
                                    s.clear_gradients};
    parallel_for(pieces_of(parameters.size), [&](std::int64_t n, int) {
        const cpu::FlushDenormals guard;
        cpu::adamw_piece({&parameters, factors, n * kPiece, std::min((n + 1) * kPiece, parameters.size)});
    });
}

double squared_norm(const void* values, ElementType type, std::int64_t size, Device device) {
    expect(size >= 0 && (size == 0 || values != nullptr), "values", "a size and data", std::to_string(size));
    if (device == Device::gpu) return squared_norm_gpu(values, type, size, device);
    backend_for(Device::cpu);
    std::vector<double> sums(static_cast<std::size_t>(pieces_of(size)));
    parallel_for(pieces_of(size), [&](std::int64_t n, int) {
        const cpu::FlushDenormals guard;
        cpu::squared_norm_piece(
            {values, type, n * kPiece, std::min((n + 1) * kPiece, size), &sums[static_cast<std::size_t>(n)]});
    });
    double total = 0.0;
    for (const double sum : sums) total += sum;
    return total;
}

}  // namespace headscope::kernels
