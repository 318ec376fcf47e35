// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/attention/rows.h"

#include <cmath>

#include "kernels/cpu/attention/sequence.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/rows.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

template <class T>
const T* As(const void* data) {
    return static_cast<const T*>(data);
}
template <class T>
T* As(void* data) {
    return static_cast<T*>(data);
}

template <class T>
void RmsNormOf(const RmsNorm& norm, void* y, std::int64_t begin, std::int64_t end) {
    const F32 d;
    const V offset = hn::Set(d, static_cast<float>(norm.gain_offset));
    for (std::int64_t row = begin; row < end; ++row) {
        const T* x = As<T>(norm.x) + row * norm.size;
        T* to = As<T>(y) + row * norm.size;
        V squares = hn::Zero(d);
        ForVectors(d, norm.size, [&](std::int64_t c, const auto& load, const auto&) HWY_ATTR {
            const V v = load(x + c);
            squares = hn::MulAdd(v, v, squares);
        });
        const float mean = Sum(d, squares) / static_cast<float>(norm.size);
        const float inverse = 1.0f / std::sqrt(mean + static_cast<float>(norm.epsilon));
        norm.inverse[row] = inverse;
        const V r = hn::Set(d, inverse);
        ForVectors(d, norm.size, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
            const V gain = hn::Add(load(As<T>(norm.gain) + c), offset);
            store(hn::Mul(hn::Mul(load(x + c), r), gain), to + c);
        });
    }
}

void RmsNormRows(const RmsNorm& norm, void* y, std::int64_t begin, std::int64_t end) {
    if (norm.type == ElementType::float32)
        RmsNormOf<float>(norm, y, begin, end);
    else
        RmsNormOf<std::uint16_t>(norm, y, begin, end);
}

template <class T>
void RmsNormBackwardOf(const RmsNorm& norm, const void* dy, const void* addend, void* dx, float* d_gain,
                       std::int64_t begin, std::int64_t end) {
    const F32 d;
    const V offset = hn::Set(d, static_cast<float>(norm.gain_offset));
    for (std::int64_t c = 0; d_gain != nullptr && c < norm.size; ++c) d_gain[c] = 0.0f;
    for (std::int64_t row = begin; row < end; ++row) {
        const T* x = As<T>(norm.x) + row * norm.size;
        const T* from = As<T>(dy) + row * norm.size;
        const T* other = addend == nullptr ? nullptr : As<T>(addend) + row * norm.size;
        T* to = As<T>(dx) + row * norm.size;
        const V r = hn::Set(d, norm.inverse[row]);
        V products = hn::Zero(d);
        ForVectors(d, norm.size, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
            const V v = load(x + c), g = load(from + c);
            products = hn::MulAdd(hn::Mul(g, hn::Add(load(As<T>(norm.gain) + c), offset)), v, products);
            if (d_gain != nullptr) store(hn::MulAdd(g, hn::Mul(v, r), load(d_gain + c)), d_gain + c);
        });
        const V mean = hn::Set(d, Sum(d, products) / static_cast<float>(norm.size));
        const V factor = hn::Mul(hn::Mul(r, r), mean);
        ForVectors(d, norm.size, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
            const V g = hn::Mul(load(from + c), hn::Add(load(As<T>(norm.gain) + c), offset));
            V result = hn::Mul(r, hn::NegMulAdd(load(x + c), factor, g));
            if (other != nullptr) result = hn::Add(result, load(other + c));
            store(result, to + c);
        });
    }
}

void RmsNormBackwardRows(const RmsNorm& norm, const void* dy, const void* addend, void* dx, float* d_gain,
                         std::int64_t begin, std::int64_t end) {
    if (norm.type == ElementType::float32)
        RmsNormBackwardOf<float>(norm, dy, addend, dx, d_gain, begin, end);
    else
        RmsNormBackwardOf<std::uint16_t>(norm, dy, addend, dx, d_gain, begin, end);
}

template <class T>
void ColumnSumsOf(const T* x, std::int64_t size, std::int64_t begin, std::int64_t end, float* sums) {
    const F32 d;
    ForVectors(d, size, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
        V sum = hn::Zero(d);
        for (std::int64_t row = begin; row < end; ++row) sum = hn::Add(sum, load(x + row * size + c));
        store(sum, sums + c);
    });
}

void ColumnSums(const void* x, ElementType type, std::int64_t size, std::int64_t begin, std::int64_t end, float* sums) {
    if (type == ElementType::float32)
        ColumnSumsOf(As<float>(x), size, begin, end, sums);
    else
        ColumnSumsOf(As<std::uint16_t>(x), size, begin, end, sums);
}

template <class T>
void GatedSiluOf(const GatedTask& task) {
    const F32 d;
    for (std::int64_t row = task.begin; row < task.end; ++row) {
        const T* gates = As<T>(task.gate_up) + row * 2 * task.size;
        if (task.dy == nullptr) {
            T* out = As<T>(task.out) + row * task.size;
            ForVectors(d, task.size, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
                const V gate = load(gates + c);
                store(hn::Mul(hn::Mul(gate, Sigmoid(d, gate)), load(gates + task.size + c)), out + c);
            });
            continue;
        }
        const T* from = As<T>(task.dy) + row * task.size;
        T* out = As<T>(task.out) + row * 2 * task.size;
        ForVectors(d, task.size, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
            const V gate = load(gates + c), up = load(gates + task.size + c), g = load(from + c);
            const V s = Sigmoid(d, gate), silu = hn::Mul(gate, s);
            // silu' = s + x s (1 - s)
            const V slope = hn::MulAdd(silu, hn::Sub(hn::Set(d, 1.0f), s), s);
            store(hn::Mul(hn::Mul(g, up), slope), out + c);
            store(hn::Mul(g, silu), out + task.size + c);
        });
    }
}

void GatedSiluRows(const GatedTask& task) {
    if (task.type == ElementType::float32)
        GatedSiluOf<float>(task);
    else
        GatedSiluOf<std::uint16_t>(task);
}

template <class T>
void RotateOf(const Rotation& rotation, std::int64_t begin, std::int64_t end) {
    const F32 d;
    const std::int64_t half = rotation.turned / 2, rest = rotation.size - rotation.turned;
    const V sign = hn::Set(d, rotation.backward ? -1.0f : 1.0f);
    const float scalar_sign = rotation.backward ? -1.0f : 1.0f;
    HWY_ALIGN float buffer[2 * hn::MaxLanes(F32())];
    for (std::int64_t row = begin; row < end; ++row) {
        const T* cosine = As<T>(rotation.cosine) + row % rotation.positions * half;
        const T* sine = As<T>(rotation.sine) + row % rotation.positions * half;
        for (std::int64_t h = 0; h < rotation.heads; ++h) {
            const T* x = As<T>(rotation.x) + row * rotation.row_stride + h * rotation.size;
            T* y = As<T>(rotation.y) + row * rotation.y_stride + h * rotation.size;
            if (!rotation.interleaved) {
                ForVectors(d, half, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
                    const V a = load(x + c), b = load(x + half + c), cs = load(cosine + c);
                    const V sn = hn::Mul(load(sine + c), sign);
                    store(hn::NegMulAdd(b, sn, hn::Mul(a, cs)), y + c);
                    store(hn::MulAdd(a, sn, hn::Mul(b, cs)), y + half + c);
                });
            } else {
                // Neighbours, one pair at a time: no model that is trained for speed has this layout.
                const auto one = [&](const T* from) HWY_ATTR { return hn::GetLane(LoadSome(d, from, 1)); };
                for (std::int64_t c = 0; c < half; ++c) {
                    const float a = one(x + 2 * c), b = one(x + 2 * c + 1), cs = one(cosine + c);
                    const float sn = scalar_sign * one(sine + c);
                    buffer[0] = a * cs - b * sn;
                    buffer[1] = b * cs + a * sn;
                    StoreSome(d, hn::Load(d, buffer), y + 2 * c, HWY_MIN(2, static_cast<std::int64_t>(hn::Lanes(d))));
                    if (hn::Lanes(d) == 1) StoreSome(d, hn::Set(d, buffer[1]), y + 2 * c + 1, 1);
                }
            }
            if (rest > 0) {
                ForVectors(d, rest, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
                    store(load(x + rotation.turned + c), y + rotation.turned + c);
                });
            }
        }
    }
}

void RotateRows(const Rotation& rotation, std::int64_t begin, std::int64_t end) {
    if (rotation.type == ElementType::float32)
        RotateOf<float>(rotation, begin, end);
    else
        RotateOf<std::uint16_t>(rotation, begin, end);
}

template <class T>
void AddRowsOf(const AddRowsTask& task) {
    const F32 d;
    T* to = As<T>(task.to);
    ForVectors(d, task.size, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
        V sum = hn::Zero(d);
        for (std::int64_t n = 0; n < task.count; ++n)
            sum = hn::Add(sum, load(As<T>(task.from) + task.positions[n] * task.size + c));
        store(hn::Add(load(to + c), sum), to + c);
    });
}

void AddRows(const AddRowsTask& task) {
    if (task.type == ElementType::float32)
        AddRowsOf<float>(task);
    else
        AddRowsOf<std::uint16_t>(task);
}

template <class T>
void CrossEntropyOf(const CrossEntropy& work, std::int64_t begin, std::int64_t end, float* scratch) {
    const F32 d;
    const V scale = hn::Set(d, static_cast<float>(kLog2E));
    for (std::int64_t row = begin; row < end; ++row) {
        T* logits = As<T>(work.logits) + row * work.entries;
        const std::int64_t target = work.targets[row];
        if (target < 0) {
            work.loss[row] = work.normaliser[row] = 0.0;
            for (std::int64_t c = 0; work.gradients && c < work.entries; ++c) logits[c] = T{};
            continue;
        }
        const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d)), rest = work.entries % lanes;
        V largest = hn::Set(d, -kInfinity);
        for (std::int64_t c = 0; c + lanes <= work.entries; c += lanes)
            largest = hn::Max(LoadElements(d, logits + c), largest);
        for (std::int64_t c = work.entries - rest; c < work.entries; ++c)
            largest = hn::Max(hn::Set(d, hn::GetLane(LoadSome(d, logits + c, 1))), largest);
        const float maximum = hn::GetLane(hn::MaxOfLanes(d, largest));
        const V shift = hn::Set(d, maximum);
        V sum = hn::Zero(d);
        ForVectors(d, work.entries, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
            V p = PowerOfTwo(d, hn::Mul(hn::Sub(load(logits + c), shift), scale));
            if (c + lanes > work.entries) p = hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(rest)), p);
            sum = hn::Add(sum, p);
            store(p, scratch + c);
        });
        const double total = double{Sum(d, sum)};
        const double normaliser = double{maximum} + std::log(total);
        const double chosen = double{hn::GetLane(LoadSome(d, logits + target, 1))};
        work.loss[row] = normaliser - chosen;
        work.normaliser[row] = normaliser;
        if (!work.gradients) continue;
        const V factor = hn::Set(d, static_cast<float>((1.0 + 2.0 * work.z_loss * normaliser) / total));
        const float at_target = scratch[target] * hn::GetLane(factor) - 1.0f;
        ForVectors(d, work.entries, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
            store(hn::Mul(load(scratch + c), factor), logits + c);
        });
        StoreSome(d, hn::Set(d, at_target), logits + target, 1);
    }
}

void CrossEntropyRows(const CrossEntropy& work, std::int64_t begin, std::int64_t end, float* scratch) {
    if (work.type == ElementType::float32)
        CrossEntropyOf<float>(work, begin, end, scratch);
    else
        CrossEntropyOf<std::uint16_t>(work, begin, end, scratch);
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(RmsNormRows);
HWY_EXPORT(RmsNormBackwardRows);
HWY_EXPORT(ColumnSums);
HWY_EXPORT(GatedSiluRows);
HWY_EXPORT(RotateRows);
HWY_EXPORT(AddRows);
HWY_EXPORT(CrossEntropyRows);

void rms_norm_rows(const RmsNorm& norm, void* y, std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(RmsNormRows)(norm, y, begin, end);
}
void rms_norm_backward_rows(const RmsNorm& norm, const void* dy, const void* addend, void* dx, float* d_gain,
                            std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(RmsNormBackwardRows)(norm, dy, addend, dx, d_gain, begin, end);
}
void column_sums_rows(const void* x, ElementType type, std::int64_t size, std::int64_t begin, std::int64_t end,
                      float* sums) {
    HWY_DYNAMIC_DISPATCH(ColumnSums)(x, type, size, begin, end, sums);
}
void gated_silu_rows(const GatedTask& task) {
    HWY_DYNAMIC_DISPATCH(GatedSiluRows)(task);
}
void rotate_rows(const Rotation& rotation, std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(RotateRows)(rotation, begin, end);
}
void add_rows(const AddRowsTask& task) {
    HWY_DYNAMIC_DISPATCH(AddRows)(task);
}
void cross_entropy_rows(const CrossEntropy& work, std::int64_t begin, std::int64_t end, float* scratch) {
    HWY_DYNAMIC_DISPATCH(CrossEntropyRows)(work, begin, end, scratch);
}

}  // namespace headscope::kernels::cpu
#endif
