// SPDX-License-Identifier: GPL-3.0-or-later
// Row operators, convolution and optimizer on the emulator against their formulas in float64.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <vector>

#include "kernels/gpu/host/plugin.h"
#include "kernels/gpu/operators.h"
#include "tests/kernels/emulator_case.h"

using namespace headscope::kernels;
using headscope::kernels::testing::check_fields;
using headscope::kernels::testing::Fields;
using headscope::kernels::testing::ForcedBackend;
using headscope::kernels::testing::gpu_backends;
using headscope::kernels::testing::kSingleEpsilon;
using headscope::kernels::testing::Operands;
using headscope::kernels::testing::Place;
using headscope::kernels::testing::same_bits;

namespace {

using Numbers = std::vector<float>;

std::uint16_t half_of(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

float single_of(std::uint16_t x) {
    return std::bit_cast<float>(std::uint32_t{x} << 16U);
}

/// Numbers as a tensor of either type.
class Tensor {
public:
    Tensor(ElementType type, std::size_t count, double phase) : type_(type) {
        for (std::size_t n = 0; n < count; ++n) {
            single_.push_back(static_cast<float>(2.0 * std::sin(0.7 * static_cast<double>(n) + phase)));
            half_.push_back(half_of(single_.back()));
            if (type == ElementType::bfloat16) single_.back() = single_of(half_.back());
        }
    }
    /// The numbers where a call uses them.
    void* placed(Operands& operands) {
        return type_ == ElementType::float32 ? static_cast<void*>(operands.change(single_)) : operands.change(half_);
    }
    double operator[](std::size_t n) const { return double{single_[n]}; }
    /// Numbers that a kernel wrote.
    Numbers found() const {
        if (type_ == ElementType::float32) return single_;
        Numbers values;
        for (const std::uint16_t x : half_) values.push_back(single_of(x));
        return values;
    }
    std::size_t size() const { return single_.size(); }

private:
    ElementType type_;
    Numbers single_;
    std::vector<std::uint16_t> half_;
};

constexpr ElementType kTypes[] = {ElementType::float32, ElementType::bfloat16};
constexpr std::int64_t kSizes[] = {1, 63, 64, 65, 300};

/// Sums of `terms` products of numbers within 2 or 3, and a rounding to the type.
double tolerance_of(ElementType type, double terms) {
    const double result = type == ElementType::float32 ? 0.0 : 0x1p-8;
    return result + (32.0 + 8.0 * std::sqrt(terms)) * kSingleEpsilon;
}

/// Runs on both backends of gpu_backends(), in several orders, on memory of the processor and of the GPU.
void check(const std::function<Fields(Place)>& run, const Fields& expected, double tolerance) {
    const auto on = [&](const std::string& backend, const char* seed, Place place) {
        const ForcedBackend forced(backend, seed);
        return run(place);
    };
    const auto [gpu, again] = gpu_backends();
    const Fields found = on(gpu, "1", Place::processor);
    check_fields(found, expected, tolerance);
    CHECK(same_bits(on(gpu, "2", Place::odd), found));
    CHECK(same_bits(on(again, "3", Place::interleaved), found));
}

std::size_t at(std::int64_t n) {
    return static_cast<std::size_t>(n);
}

double silu(double x) {
    return x / (1.0 + std::exp(-x));
}

double silu_slope(double x) {
    const double s = 1.0 / (1.0 + std::exp(-x));
    return s * (1.0 + x * (1.0 - s));
}

void check_norm(ElementType type, std::int64_t rows, std::int64_t size, bool with_addend) {
    INFO("type " << static_cast<int>(type) << ", " << rows << " rows of " << size);
    Tensor x(type, at(rows * size), 0.0), gain(type, at(size), 1.0), dy(type, at(rows * size), 2.0);
    Tensor addend(type, at(rows * size), 3.0);
    Numbers y, inverse, dx, d_gain(at(size));
    std::vector<double> sums(at(size));
    for (std::int64_t row = 0; row < rows; ++row) {
        double squares = 0.0, products = 0.0;
        for (std::int64_t c = 0; c < size; ++c) squares += x[at(row * size + c)] * x[at(row * size + c)];
        const double r = 1.0 / std::sqrt(squares / static_cast<double>(size) + 1e-3);
        inverse.push_back(static_cast<float>(r));
        for (std::int64_t c = 0; c < size; ++c) {
            const std::size_t n = at(row * size + c);
            y.push_back(static_cast<float>(x[n] * r * (gain[at(c)] + 0.5)));
            products += dy[n] * (gain[at(c)] + 0.5) * x[n];
            sums[at(c)] += dy[n] * x[n] * r;
        }
        for (std::int64_t c = 0; c < size; ++c) {
            const std::size_t n = at(row * size + c);
            const double g = dy[n] * (gain[at(c)] + 0.5);
            dx.push_back(static_cast<float>(r * (g - x[n] * r * r * products / static_cast<double>(size)) +
                                            (with_addend ? addend[n] : 0.0)));
        }
    }
    for (std::size_t c = 0; c < sums.size(); ++c) d_gain[c] = static_cast<float>(sums[c]);
    check(
        [&](Place place) {
            Operands operands(place);
            Tensor out(type, x.size(), 0.0), slope = out;
            Numbers found_inverse(at(rows)), found_gain(at(size));
            RmsNorm norm{
                rows, size, type, x.placed(operands), gain.placed(operands), 1e-3, 0.5, operands.change(found_inverse)};
            rms_norm_gpu(norm, out.placed(operands), operands.device());
            rms_norm_backward_gpu(norm, dy.placed(operands), with_addend ? addend.placed(operands) : nullptr,
                                  slope.placed(operands), operands.change(found_gain), operands.device());
            operands.fetch();
            return Fields{{"y", out.found()}, {"r", found_inverse}, {"dx", slope.found()}, {"d gain", found_gain}};
        },
        {{"y", y}, {"r", inverse}, {"dx", dx}, {"d gain", d_gain}},
        tolerance_of(type, static_cast<double>(size + rows)));
}

void check_rotation(ElementType type, bool interleaved, bool backward) {
    constexpr std::int64_t rows = 7, heads = 3, size = 10, turned = 6, positions = 4, stride = 35;
    Tensor x(type, at(rows * stride), 0.0), cosine(type, at(positions * 3), 1.0), sine(type, at(positions * 3), 2.0);
    const Tensor before(type, at(rows * stride), 5.0);
    Numbers expected = before.found();
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t h = 0; h < heads; ++h) {
            const std::int64_t first = row * stride + h * size;
            for (std::int64_t c = turned; c < size; ++c) expected[at(first + c)] = static_cast<float>(x[at(first + c)]);
            for (std::int64_t c = 0; c < turned / 2; ++c) {
                const std::size_t i = at(first + (interleaved ? 2 * c : c));
                const std::size_t j = at(first + (interleaved ? 2 * c + 1 : c + turned / 2));
                const double cs = cosine[at(row % positions * 3 + c)];
                const double sn = sine[at(row % positions * 3 + c)] * (backward ? -1.0 : 1.0);
                expected[i] = static_cast<float>(x[i] * cs - x[j] * sn);
                expected[j] = static_cast<float>(x[j] * cs + x[i] * sn);
            }
        }
    }
    check(
        [&](Place place) {
            Operands operands(place);
            Tensor y = before;
            Rotation rotation{rows,
                              heads,
                              size,
                              turned,
                              positions,
                              type,
                              interleaved,
                              cosine.placed(operands),
                              sine.placed(operands),
                              x.placed(operands),
                              stride,
                              y.placed(operands),
                              stride,
                              backward};
            rotate_gpu(rotation, operands.device());
            operands.fetch();
            return Fields{{"y", y.found()}};
        },
        {{"y", expected}}, tolerance_of(type, 2.0));
}

void check_cross_entropy(ElementType type, std::int64_t rows, std::int64_t entries, double z_loss) {
    const Tensor logits(type, at(rows * entries), 0.3);
    std::vector<std::int64_t> targets;
    for (std::int64_t row = 0; row < rows; ++row) targets.push_back(row % 3 == 2 ? -1 : row * 7 % entries);
    Numbers slopes, losses, normalisers;
    for (std::int64_t row = 0; row < rows; ++row) {
        double sum = 0.0;
        for (std::int64_t c = 0; c < entries; ++c) sum += std::exp(logits[at(row * entries + c)]);
        const std::int64_t target = targets[at(row)];
        const bool counts = target >= 0;
        normalisers.push_back(counts ? static_cast<float>(std::log(sum)) : 0.0F);
        losses.push_back(counts ? static_cast<float>(std::log(sum) - logits[at(row * entries + target)]) : 0.0F);
        for (std::int64_t c = 0; c < entries; ++c) {
            const double p = std::exp(logits[at(row * entries + c)]) / sum;
            slopes.push_back(
                counts ? static_cast<float>(p * (1.0 + 2.0 * z_loss * std::log(sum)) - (c == target ? 1.0 : 0.0))
                       : 0.0F);
        }
    }
    check(
        [&](Place place) {
            Operands operands(place);
            Tensor work = logits;
            std::vector<double> loss(at(rows)), normaliser(at(rows));
            cross_entropy_gpu({rows, entries, type, work.placed(operands), targets.data(), z_loss, true, loss.data(),
                               normaliser.data()},
                              operands.device());
            operands.fetch();
            return Fields{{"gradients", work.found()},
                          {"loss", {loss.begin(), loss.end()}},
                          {"normalizer", {normaliser.begin(), normaliser.end()}}};
        },
        {{"gradients", slopes}, {"loss", losses}, {"normalizer", normalisers}},
        tolerance_of(type, static_cast<double>(entries)));
}

void check_convolution(ElementType type, std::int64_t length, std::int64_t taps, bool plain, bool with_before) {
    constexpr std::int64_t batch = 2, channels = 5, stride = 7;
    INFO("length " << length << ", taps " << taps << ", plain " << plain);
    Tensor x(type, at(batch * length * stride), 0.0), weight(type, at(channels * taps), 1.0);
    Tensor bias(type, at(channels), 2.0), dy(type, at(batch * length * channels), 3.0);
    Tensor before(type, at(batch * (taps - 1) * channels), 4.0);
    const auto input = [&](std::int64_t b, std::int64_t t, std::int64_t c) {
        if (t >= 0) return x[at((b * length + t) * stride + c)];
        return with_before ? before[at(((b + 1) * (taps - 1) + t) * channels + c)] : 0.0;
    };
    Numbers y, dx(at(batch * length * channels)), d_weight, d_bias;
    std::vector<double> slopes(at(batch * length * channels)), of_weight(at(channels * taps)), of_bias(at(channels));
    for (std::int64_t b = 0; b < batch; ++b) {
        for (std::int64_t t = 0; t < length; ++t) {
            for (std::int64_t c = 0; c < channels; ++c) {
                double s = bias[at(c)];
                for (std::int64_t j = 0; j < taps; ++j) s += weight[at(c * taps + j)] * input(b, t - taps + 1 + j, c);
                y.push_back(static_cast<float>(plain ? s : silu(s)));
                const std::size_t n = at((b * length + t) * channels + c);
                slopes[n] = dy[n] * (plain ? 1.0 : silu_slope(s));
                of_bias[at(c)] += slopes[n];
                for (std::int64_t j = 0; j < taps; ++j)
                    of_weight[at(c * taps + j)] += slopes[n] * input(b, t - taps + 1 + j, c);
            }
        }
        for (std::int64_t t = 0; t < length; ++t) {
            for (std::int64_t c = 0; c < channels; ++c) {
                double sum = 0.0;
                for (std::int64_t j = 0; j < taps; ++j) {
                    const std::int64_t later = t + taps - 1 - j;
                    if (later < length)
                        sum += weight[at(c * taps + j)] * slopes[at((b * length + later) * channels + c)];
                }
                dx[at((b * length + t) * channels + c)] = static_cast<float>(sum);
            }
        }
    }
    for (const double g : of_weight) d_weight.push_back(static_cast<float>(g));
    for (const double g : of_bias) d_bias.push_back(static_cast<float>(g));
    Fields expected{{"y", y}};
    if (!with_before) expected.insert(expected.end(), {{"dx", dx}, {"d weight", d_weight}, {"d bias", d_bias}});
    check(
        [&](Place place) {
            Operands operands(place);
            ShortConvolution work{batch,
                                  length,
                                  channels,
                                  taps,
                                  type,
                                  x.placed(operands),
                                  stride,
                                  weight.placed(operands),
                                  bias.placed(operands),
                                  with_before ? before.placed(operands) : nullptr,
                                  plain};
            Tensor out(type, at(batch * length * channels), 0.0), slope = out;
            Numbers of_taps(at(channels * taps)), of_biases(at(channels));
            short_convolution_gpu(work, out.placed(operands), operands.device());
            if (!with_before)
                short_convolution_backward_gpu(work, dy.placed(operands), slope.placed(operands),
                                               operands.change(of_taps), operands.change(of_biases), operands.device());
            operands.fetch();
            Fields found{{"y", out.found()}};
            if (with_before) return found;
            found.insert(found.end(), {{"dx", slope.found()}, {"d weight", of_taps}, {"d bias", of_biases}});
            return found;
        },
        expected, tolerance_of(type, static_cast<double>(taps + length)));
}

}  // namespace

TEST_CASE("RMS norms follow their formulas on the emulator", "[emulator][rows]") {
    for (const ElementType type : kTypes)
        for (const std::int64_t size : kSizes) check_norm(type, 3, size, size % 2 == 1);
    check_norm(ElementType::float32, 130, 5, true);
}

TEST_CASE("gated SiLU follows its formula on the emulator", "[emulator][rows]") {
    for (const ElementType type : kTypes) {
        for (const std::int64_t size : kSizes) {
            constexpr std::int64_t rows = 3;
            Tensor gate_up(type, at(2 * rows * size), 0.0), dy(type, at(rows * size), 1.0);
            Numbers y, slopes(at(2 * rows * size));
            for (std::int64_t row = 0; row < rows; ++row) {
                for (std::int64_t c = 0; c < size; ++c) {
                    const std::size_t g = at(row * 2 * size + c), u = g + at(size);
                    y.push_back(static_cast<float>(silu(gate_up[g]) * gate_up[u]));
                    slopes[g] = static_cast<float>(dy[at(row * size + c)] * gate_up[u] * silu_slope(gate_up[g]));
                    slopes[u] = static_cast<float>(dy[at(row * size + c)] * silu(gate_up[g]));
                }
            }
            check(
                [&](Place place) {
                    Operands operands(place);
                    Tensor out(type, y.size(), 0.0), slope(type, slopes.size(), 0.0);
                    void* const both = gate_up.placed(operands);
                    gated_silu_gpu(both, type, rows, size, out.placed(operands), operands.device());
                    gated_silu_backward_gpu(both, dy.placed(operands), type, rows, size, slope.placed(operands),
                                            operands.device());
                    operands.fetch();
                    return Fields{{"y", out.found()}, {"gradient", slope.found()}};
                },
                {{"y", y}, {"gradient", slopes}}, tolerance_of(type, 4.0));
        }
    }
}

TEST_CASE("rotations turn pairs on the emulator", "[emulator][rows]") {
    for (const ElementType type : kTypes)
        for (const bool interleaved : {false, true})
            for (const bool backward : {false, true}) check_rotation(type, interleaved, backward);
}

TEST_CASE("cross-entropy follows its formula on the emulator", "[emulator][rows]") {
    for (const ElementType type : kTypes)
        for (const std::int64_t entries : {1, 63, 64, 65, 1000}) check_cross_entropy(type, 5, entries, 1e-2);
    check_cross_entropy(ElementType::float32, 3, 70, 0.0);
}

TEST_CASE("causal convolutions follow their formula on the emulator", "[emulator][rows]") {
    for (const ElementType type : kTypes) {
        for (const std::int64_t length : {1, 3, 64, 65}) {
            for (const bool plain : {false, true}) {
                check_convolution(type, length, 4, plain, /*with_before=*/false);
                check_convolution(type, length, 4, plain, /*with_before=*/true);
            }
        }
    }
    check_convolution(ElementType::float32, 40, 32, false, false);
    check_convolution(ElementType::float32, 5, 1, false, false);
}

TEST_CASE("AdamW follows its formula on the emulator", "[emulator][rows]") {
    for (const ElementType type : kTypes) {
        constexpr std::int64_t size = 700, decayed = 301;
        Tensor gradients(type, at(size), 0.0);
        const Tensor start(ElementType::float32, at(size), 1.0);
        AdamWSettings settings{1e-2, 0.9, 0.95, 1e-8, 0.1};
        settings.gradient_scale = 0.5;
        std::vector<double> w(at(size)), m(at(size)), v(at(size));
        for (std::size_t n = 0; n < w.size(); ++n) w[n] = start[n];
        for (std::int64_t step = 1; step <= 3; ++step) {
            const double first = 1.0 - std::pow(0.9, step), second = 1.0 - std::pow(0.95, step);
            for (std::size_t n = 0; n < w.size(); ++n) {
                const double g = 0.5 * gradients[n];
                m[n] = 0.9 * m[n] + 0.1 * g;
                v[n] = 0.95 * v[n] + 0.05 * g * g;
                const double decay = n < at(decayed) ? 0.1 * w[n] : 0.0;
                w[n] -= 1e-2 * (m[n] / first / (std::sqrt(v[n] / second) + 1e-8) + decay);
            }
        }
        check(
            [&](Place place) {
                Operands operands(place);
                Numbers weights = start.found(), first(at(size)), second(at(size));
                std::vector<std::uint16_t> rounded(at(size));
                Tensor slopes = gradients;
                const bool single = type == ElementType::float32;
                float* const master = operands.change(weights);
                const FlatParameters parameters{size,
                                                decayed,
                                                type,
                                                single ? static_cast<void*>(master) : operands.change(rounded),
                                                single ? nullptr : master,
                                                type,
                                                slopes.placed(operands),
                                                operands.change(first),
                                                operands.change(second)};
                AdamWSettings now = settings;
                for (now.step = 1; now.step <= 3; ++now.step) {
                    now.clear_gradients = now.step == 3;
                    adamw_step_gpu(parameters, now, operands.device());
                }
                operands.fetch();
                for (std::size_t n = 0; !single && n < rounded.size(); ++n) REQUIRE(rounded[n] == half_of(weights[n]));
                return Fields{{"weights", weights}, {"m", first}, {"v", second}, {"gradients", slopes.found()}};
            },
            {{"weights", {w.begin(), w.end()}},
             {"m", {m.begin(), m.end()}},
             {"v", {v.begin(), v.end()}},
             {"gradients", Numbers(at(size), 0.0F)}},
            tolerance_of(ElementType::float32, 3.0));
    }
}

TEST_CASE("norms of gradients are exact sums on the emulator", "[emulator][rows]") {
    for (const ElementType type : kTypes) {
        for (const std::int64_t size : {0, 1, 65, 70'000}) {
            Tensor values(type, at(size), 0.0);
            double expected = 0.0;
            for (std::size_t n = 0; n < values.size(); ++n) expected += values[n] * values[n];
            const auto on = [&](const std::string& backend, const char* seed, Place place) {
                const ForcedBackend forced(backend, seed);
                Operands operands(place);
                return squared_norm_gpu(values.placed(operands), type, size, operands.device());
            };
            const auto [gpu, again] = gpu_backends();
            const double found = on(gpu, "1", Place::processor);
            CHECK(found == Approx(expected).epsilon(1e-12));
            CHECK(on(gpu, "2", Place::odd) == found);
            CHECK(on(again, "3", Place::interleaved) == found);
        }
    }
}

TEST_CASE("memory of the emulator is uninitialized in each call", "[emulator][memory]") {
    if (gpu_backends()[0] != "emulator") return;
    const ForcedBackend forced("emulator");
    for (int call = 0; call < 2; ++call) {
        gpu::Memory memory(gpu::plugin("test"), "test");
        constexpr std::uint32_t kUninitialized = 0xFFFFFFFF;
        constexpr std::ptrdiff_t kWords = 1001;
        auto* const words = memory.take<std::uint32_t>(kWords);
        CHECK(std::count(words, words + kWords, kUninitialized) == kWords);
        std::fill(words, words + kWords, 1U);
    }
}
