// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. Parts of decoders: scales, bytes, nibbles.
#if defined(HEADSCOPE_KERNELS_CPU_PACKED_DECODE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_PACKED_DECODE_INL_H
#undef HEADSCOPE_KERNELS_CPU_PACKED_DECODE_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_PACKED_DECODE_INL_H
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::CappedTag<std::uint8_t, 32>;
using HalfBytes = hn::CappedTag<std::uint8_t, 16>;
using ScaleFloats = hn::CappedTag<float, 8>;

/// Decoded blocks of a row: weight = scale * value - offset.
struct Tile {
    HWY_ALIGN std::int8_t values[kTileValues];  ///< in the order of columns
    HWY_ALIGN float scales[kTileParts];
    HWY_ALIGN float offsets[kTileParts];
};

template <class D>
HWY_INLINE int Lanes(D d) {
    return static_cast<int>(hn::Lanes(d));
}

template <class T>
HWY_INLINE T Load(const std::uint8_t* at) {
    T number = 0;
    hwy::CopyBytes<sizeof number>(at, &number);
    return number;
}

/// Numbers of 16 bits at any address.
template <class D>
HWY_INLINE hn::Vec<D> LoadWords(D d, const std::uint8_t* from) {
#if HWY_TARGET == HWY_SCALAR
    return hn::Set(d, Load<std::uint16_t>(from));
#else
    return hn::BitCast(d, hn::LoadU(hn::Repartition<std::uint8_t, D>(), from));
#endif
}

/// float16 as float32, exactly, infinities and NaN included.
template <class D>
HWY_INLINE hn::Vec<D> FromHalf(D d, hn::Vec<hn::Rebind<std::uint16_t, D>> half) {
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
    // Highway's conversion in software takes infinities for numbers.
    const hn::RebindToUnsigned<D> du;
    const hn::RebindToSigned<D> di;
    const auto bits = hn::PromoteTo(di, half);
    const auto magnitude = hn::And(bits, hn::Set(di, 0x7FFF));
    const auto sign = hn::ShiftLeft<16>(hn::Sub(bits, magnitude));
    const auto bias = hn::Set(di, 0x38000000);
    const auto normal = hn::Add(hn::ShiftLeft<13>(magnitude), bias);
    const auto small = hn::BitCast(di, hn::Mul(hn::ConvertTo(d, magnitude), hn::Set(d, 0x1p-24F)));
    const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, 0x400)), small, normal);
    const auto all = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x7BFF)), hn::Add(normal, bias), finite);
    return hn::BitCast(d, hn::Or(hn::BitCast(du, sign), hn::BitCast(du, all)));
#else
    return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), half));
#endif
}

HWY_INLINE float HalfAt(const std::uint8_t* at) {
    const hn::CappedTag<float, 1> d;
    return hn::GetLane(FromHalf(d, hn::Set(hn::Rebind<std::uint16_t, decltype(d)>(), Load<std::uint16_t>(at))));
}

/// Eight numbers in bytes, signed or not: to[i] = factor (byte i - bias).
template <class T>
HWY_INLINE void PutScales(std::uint64_t bytes, int bias, float factor, float* to) {
    const ScaleFloats d;
    const hn::Rebind<std::int32_t, ScaleFloats> di;
    const hn::Rebind<T, ScaleFloats> dt;
    T from[8];
    hwy::CopyBytes<8>(&bytes, from);
    for (int i = 0; i < 8; i += Lanes(d)) {
        const auto number = hn::Sub(hn::PromoteTo(di, hn::LoadU(dt, from + i)), hn::Set(di, bias));
        hn::Store(hn::Mul(hn::ConvertTo(d, number), hn::Set(d, factor)), d, to + i);
    }
}

/// Nibble j to byte j.
HWY_INLINE std::uint64_t SpreadNibbles(std::uint32_t nibbles) {
    std::uint64_t bytes = nibbles;
    bytes = (bytes | bytes << 16U) & 0x0000FFFF0000FFFFU;
    bytes = (bytes | bytes << 8U) & 0x00FF00FF00FF00FFU;
    return (bytes | bytes << 4U) & 0x0F0F0F0F0F0F0F0FU;
}

template <class D>
HWY_INLINE hn::Vec<D> SetByte(D d, int value) {
    return hn::Set(d, static_cast<std::uint8_t>(value));
}

template <class D>
HWY_INLINE void PutBytes(D /*d*/, hn::Vec<D> bytes, std::int8_t* to) {
    const hn::RebindToSigned<D> di;
    hn::StoreU(hn::BitCast(di, bytes), di, to);
}

/// Bits of a word, one for each of 32 values.
class WordBits {
public:
#if HWY_TARGET == HWY_SCALAR
    explicit WordBits(std::uint32_t word) : word_(word) {}
    /// Set for values `first`, `first` + 1, .. whose bits are set.
    HWY_INLINE hn::Mask<Bytes> From(int first) const {
        return hn::MaskFromVec(SetByte(Bytes(), (word_ >> first & 1U) != 0 ? 255 : 0));
    }

private:
    std::uint32_t word_;
#else
    explicit HWY_INLINE WordBits(std::uint32_t word)
        : word_(hn::BitCast(Bytes(), hn::Set(hn::Repartition<std::uint32_t, Bytes>(), word))) {}
    /// Set for values `first`, `first` + 1, .. whose bits are set.
    HWY_INLINE hn::Mask<Bytes> From(int first) const {
        HWY_ALIGN static constexpr std::uint8_t kMasks[32] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128,
                                                              1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
        HWY_ALIGN static constexpr std::uint8_t kBytesOfBits[32] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                                                    2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3};
        const Bytes d;
        return hn::TestBit(hn::TableLookupBytes(word_, hn::Load(d, kBytesOfBits + first)), hn::Load(d, kMasks + first));
    }

private:
    hn::Vec<Bytes> word_;
#endif
};

/// 32 values from 16 bytes, low nibbles first: map(nibbles, number of the first).
template <class Map>
HWY_INLINE void PutNibbles(const std::uint8_t* from, std::int8_t* to, const Map& map) {
    const Bytes d;
#if HWY_MAX_BYTES >= 32
    HWY_ALIGN static constexpr std::uint32_t kShifts[8] = {0, 0, 0, 0, 4, 4, 4, 4};
    const hn::Repartition<std::uint32_t, Bytes> d32;
    const auto words = hn::BitCast(d32, hn::LoadDup128(d, from));
    const auto bytes = hn::BitCast(d, hn::Shr(words, hn::Load(d32, kShifts)));
    PutBytes(d, map(hn::And(bytes, SetByte(d, 15)), 0), to);
#else
    for (int i = 0; i < 16; i += Lanes(d)) {
        const auto bytes = hn::LoadU(d, from + i);
        PutBytes(d, map(hn::And(bytes, SetByte(d, 15)), i), to + i);
        PutBytes(d, map(hn::ShiftRight<4>(bytes), 16 + i), to + 16 + i);
    }
#endif
}

HWY_ALIGN constexpr std::int8_t kUnevenLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                     1,    13,   25,  38,  53,  69,  89,  113};
/// Twice e2m1.
HWY_ALIGN constexpr std::int8_t kTwiceE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

HWY_INLINE void PutLevels(const std::int8_t* levels, const std::uint8_t* from, std::int8_t* to) {
#if HWY_TARGET == HWY_SCALAR
    for (int i = 0; i < 16; ++i) {
        to[i] = levels[from[i] & 15];
        to[16 + i] = levels[from[i] >> 4];
    }
#else
    const Bytes d;
    const auto table = hn::BitCast(d, hn::LoadDup128(hn::RebindToSigned<Bytes>(), levels));
    PutNibbles(from, to, [table](auto nibbles, int) HWY_ATTR { return hn::TableLookupBytes(table, nibbles); });
#endif
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
