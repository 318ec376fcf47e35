// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/dense/optimizer.h"

#include "kernels/cpu/attention/sequence.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dense/optimizer.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

/// Elements [begin, end), all of which decay or none. `rounded`: where the bfloat16 copy goes, or null.
template <class G>
void Update(const AdamWPiece& piece, std::int64_t begin, std::int64_t end, float shrink, float* weights,
            std::uint16_t* rounded, G* gradients) {
    const F32 d;
    const AdamWFactors& f = piece.factors;
    const V scale = hn::Set(d, f.gradient_scale), keep_first = hn::Set(d, f.keep_first);
    const V add_first = hn::Set(d, f.add_first), keep_second = hn::Set(d, f.keep_second);
    const V add_second = hn::Set(d, f.add_second), step = hn::Set(d, f.step);
    const V second_scale = hn::Set(d, f.second_scale), epsilon = hn::Set(d, f.epsilon), keep = hn::Set(d, shrink);
    ForVectors(d, end - begin, [&](std::int64_t x, const auto& load, const auto& store) HWY_ATTR {
        const std::int64_t at = begin + x;
        const V g = hn::Mul(load(gradients + at), scale);
        const V m = hn::MulAdd(load(piece.parameters->first + at), keep_first, hn::Mul(g, add_first));
        const V v = hn::MulAdd(load(piece.parameters->second + at), keep_second, hn::Mul(hn::Mul(g, g), add_second));
        store(m, piece.parameters->first + at);
        store(v, piece.parameters->second + at);
        const V denominator = hn::MulAdd(hn::Sqrt(v), second_scale, epsilon);
        const V w = hn::NegMulAdd(step, hn::Div(m, denominator), hn::Mul(load(weights + at), keep));
        store(w, weights + at);
        if (rounded != nullptr) store(w, rounded + at);
        if (f.clear) store(hn::Zero(d), gradients + at);
    });
}

template <class G>
void UpdatePiece(const AdamWPiece& piece) {
    const FlatParameters& p = *piece.parameters;
    const bool single = p.type == ElementType::float32;
    float* weights = single ? static_cast<float*>(p.weights) : p.master;
    std::uint16_t* rounded = single ? nullptr : static_cast<std::uint16_t*>(p.weights);
    G* gradients = static_cast<G*>(p.gradients);
    const std::int64_t border = HWY_MIN(HWY_MAX(p.decayed, piece.begin), piece.end);
    Update(piece, piece.begin, border, piece.factors.shrink, weights, rounded, gradients);
    Update(piece, border, piece.end, 1.0f, weights, rounded, gradients);
}

void AdamW(const AdamWPiece& piece) {
    if (piece.parameters->gradient_type == ElementType::float32)
        UpdatePiece<float>(piece);
    else
        UpdatePiece<std::uint16_t>(piece);
}

template <class T>
double SquaredNormOf(const T* values, std::int64_t begin, std::int64_t end) {
    const F32 d;
    const hn::ScalableTag<double> d64;
    const hn::Rebind<float, hn::ScalableTag<double>> part;  // as many as fit into a vector of float64
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), lanes64 = static_cast<std::int64_t>(hn::Lanes(d64));
    HWY_ALIGN float buffer[hn::MaxLanes(F32())];
    auto sum = hn::Zero(d64);
    ForVectors(d, end - begin, [&](std::int64_t x, const auto& load, const auto&) HWY_ATTR {
        hn::Store(load(values + begin + x), d, buffer);
        for (std::int64_t n = 0; n < lanes; n += lanes64) {
            const auto v = hn::PromoteTo(d64, hn::Load(part, buffer + n));
            sum = hn::MulAdd(v, v, sum);
        }
    });
    return hn::GetLane(hn::SumOfLanes(d64, sum));
}

void SquaredNorm(const NormPiece& piece) {
    *piece.sum = piece.type == ElementType::float32
                     ? SquaredNormOf(static_cast<const float*>(piece.values), piece.begin, piece.end)
                     : SquaredNormOf(static_cast<const std::uint16_t*>(piece.values), piece.begin, piece.end);
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(AdamW);
HWY_EXPORT(SquaredNorm);

void adamw_piece(const AdamWPiece& piece) {
    HWY_DYNAMIC_DISPATCH(AdamW)(piece);
}

void squared_norm_piece(const NormPiece& piece) {
    HWY_DYNAMIC_DISPATCH(SquaredNorm)(piece);
}

}  // namespace headscope::kernels::cpu
#endif
