// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. Decoders of blocks of 256 values that are entries of a grid with signs: IQ1, IQ2, IQ3.
// large_blocks-inl.h lists a decoder's members. Scales are exact: 11 bits of a float16 times at most 5 bits.
#if defined(HEADSCOPE_KERNELS_CPU_PACKED_GRID_BLOCKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_PACKED_GRID_BLOCKS_INL_H
#undef HEADSCOPE_KERNELS_CPU_PACKED_GRID_BLOCKS_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_PACKED_GRID_BLOCKS_INL_H
#endif

#include "kernels/packed/cpu/decode-inl.h"
#include "kernels/packed/grids.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

using Words = hn::CappedTag<std::uint16_t, 16>;
using DoubleWords = hn::Repartition<std::uint32_t, Bytes>;

#if HWY_TARGET != HWY_SCALAR
/// Entries at[0], at[1], .. of a grid side by side; their number fills the vector.
template <class D, std::size_t kSize, std::size_t kEntries, class Index>
HWY_INLINE hn::Vec<D> LoadEntries(D d, const grids::Grid<kSize, kEntries>& grid, const Index* at) {
    if constexpr (hn::MaxLanes(D()) <= kSize) {
        return hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(grid[*at].data()));
    } else {
        const hn::Half<D> half;
        constexpr std::size_t kHalf = hn::MaxLanes(hn::Half<D>()) / kSize;
        const auto low = LoadEntries(half, grid, at);
        return hn::Combine(d, LoadEntries(half, grid, at + kHalf), low);
    }
}
#endif

/// 32 values, map(entries, number of the first).
template <std::size_t kSize, std::size_t kEntries, class Index, class Map>
HWY_INLINE void PutEntries(const grids::Grid<kSize, kEntries>& grid, const Index* at, std::int8_t* to, const Map& map) {
    const Bytes d;
    for (int i = 0; i < 32; i += Lanes(d)) {
#if HWY_TARGET == HWY_SCALAR
        const auto entries = SetByte(d, grid[at[i / kSize]][i % kSize]);
#else
        const auto entries = LoadEntries(d, grid, at + i / static_cast<int>(kSize));
#endif
        PutBytes(d, map(entries, i), to + i);
    }
}

/// 32 values, negative where a bit of `signs` is set.
template <std::size_t kSize, std::size_t kEntries, class Index>
HWY_INLINE void PutSignedEntries(const grids::Grid<kSize, kEntries>& grid, const Index* at, std::uint32_t signs,
                                 std::int8_t* to) {
    const Bytes d;
    const WordBits negative(signs);
    PutEntries(grid, at, to, [d, &negative](auto entries, int first) HWY_ATTR {
        return hn::IfThenElse(negative.From(first), hn::Sub(hn::Zero(d), entries), entries);
    });
}

/// Codes of 7 bits in bytes to the signs of 8 values: bit 7 becomes the parity of the others.
template <class D>
HWY_INLINE hn::Vec<D> WithParity(D d, hn::Vec<D> codes) {
    auto parity = hn::Xor(codes, hn::ShiftRight<4>(codes));
    parity = hn::Xor(parity, hn::ShiftRight<2>(parity));
    parity = hn::Xor(parity, hn::ShiftRight<1>(parity));
    const auto lowest = hn::Set(d, static_cast<hn::TFromD<D>>(0x01010101U));
    return hn::Or(codes, hn::ShiftLeft<7>(hn::And(parity, lowest)));
}

/// Words of parts `first`, `first` + 1, .., kStride bytes apart: four codes of signs and, on top, a number s.
template <int kStride>
HWY_INLINE hn::Vec<DoubleWords> LoadPartWords(const std::uint8_t* from, int first) {
    const DoubleWords d;
#if HWY_TARGET == HWY_SCALAR
    return hn::Set(d, Load<std::uint32_t>(from + kStride * first));
#else
    const Bytes bytes;
    if constexpr (kStride == 4) return hn::BitCast(d, hn::LoadU(bytes, from + 4 * first));
    const std::uint8_t* begin = from - 4 + 8 * first;  // pairs that end in these words
    const auto low = hn::BitCast(d, hn::LoadU(bytes, begin));
    return hn::ConcatOdd(d, hn::BitCast(d, hn::LoadU(bytes, begin + Lanes(bytes))), low);
#endif
}

/// Signs of 32 values of each part.
template <int kStride>
HWY_INLINE void PutSigns(const std::uint8_t* words, std::uint32_t* signs) {
    const DoubleWords d;
    for (int i = 0; i < 8; i += Lanes(d)) {
        const auto codes = LoadPartWords<kStride>(words, i);
        const auto low =
            hn::Or(hn::And(codes, hn::Set(d, 0x7FU)), hn::And(hn::ShiftLeft<1>(codes), hn::Set(d, 0x7F00U)));
        const auto high = hn::Or(hn::And(hn::ShiftLeft<2>(codes), hn::Set(d, 0x7F0000U)),
                                 hn::And(hn::ShiftLeft<3>(codes), hn::Set(d, 0x7F000000U)));
        hn::Store(WithParity(d, hn::Or(low, high)), d, signs + i);
    }
}

/// Eight scales, scale (2 s + 1), from numbers(part of the first): s in a vector.
template <class Numbers>
HWY_INLINE void PutOddScalesOf(const Numbers& numbers, float scale, float* to) {
    const ScaleFloats d;
    const DoubleWords d32;
    for (int i = 0; i < 8; i += Lanes(d)) {
        const auto number = numbers(i);
        const auto odd =
            hn::BitCast(hn::RebindToSigned<DoubleWords>(), hn::Or(hn::Add(number, number), hn::Set(d32, 1U)));
        hn::Store(hn::Mul(hn::ConvertTo(d, odd), hn::Set(d, scale)), d, to + i);
    }
}

/// Eight scales from numbers s in bytes: scale (2 s + 1).
HWY_INLINE void PutOddScales(std::uint64_t bytes, float scale, float* to) {
    PutScales<std::uint8_t>(bytes << 1U | 0x0101010101010101U, 0, scale, to);
}

/// Sixteen scales from nibbles.
HWY_INLINE void PutOddScalesOfNibbles(const std::uint8_t* nibbles, float scale, float* to) {
    for (int i = 0; i < 2; ++i) PutOddScales(SpreadNibbles(Load<std::uint32_t>(nibbles + 4 * i)), scale, to + 8 * i);
}

/// Bits of 16 indices above their low bytes, packed in up to eight bytes. Index i takes two of these, bytes[2 i] and
/// bytes[2 i + 1], as a word; times factors[i] its bits lie where `mask` keeps them.
struct HighBits {
    HWY_ALIGN std::uint8_t bytes[32];
    HWY_ALIGN std::uint16_t factors[16];
    std::uint16_t mask;
};

/// Sixteen indices from their low bytes and the bits above.
HWY_INLINE void PutIndices(const std::uint8_t* low, std::uint64_t high, const HighBits& bits, std::uint16_t* to) {
    const Words d;
#if HWY_TARGET == HWY_SCALAR
    for (int i = 0; i < 16; ++i) {
        const auto byte = [high, &bits, i](int n) {
            return static_cast<std::uint32_t>(high >> (8 * bits.bytes[2 * i + n])) & 255U;
        };
        const std::uint32_t word = byte(0) | byte(1) << 8U;
        to[i] = static_cast<std::uint16_t>(low[i] | (word * bits.factors[i] & bits.mask));
    }
    static_cast<void>(d);
#else
    const hn::Repartition<std::uint8_t, Words> db;
    const hn::Rebind<std::uint8_t, Words> d8;
    const auto source = hn::BitCast(db, hn::Set(hn::Repartition<std::uint64_t, Words>(), high));
    for (int i = 0; i < 16; i += Lanes(d)) {
        const auto spread = hn::BitCast(d, hn::TableLookupBytes(source, hn::Load(db, bits.bytes + 2 * i)));
        const auto above = hn::And(hn::Mul(spread, hn::Load(d, bits.factors + i)), hn::Set(d, bits.mask));
        hn::Store(hn::Or(hn::PromoteTo(d, hn::LoadU(d8, low + i)), above), d, to + i);
    }
#endif
}

struct Iq2Xxs {
    static constexpr int kValues = 256, kBytes = 66, kPart = 32;
    static constexpr bool kOffsets = false;
    static HWY_INLINE void Scales(const std::uint8_t* block, int /*count*/, Tile& tile) {
        const auto number = [block](int first)
                                HWY_ATTR { return hn::ShiftRight<28>(LoadPartWords<8>(block + 6, first)); };
        PutOddScalesOf(number, HalfAt(block) * 0.125F, tile.scales);
    }
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        HWY_ALIGN std::uint32_t signs[8];
        PutSigns<8>(block + 6, signs);
        for (int part = 0; part < 8; ++part)
            PutSignedEntries(grids::kIq2Xxs, block + 2 + 8 * part, signs[part], to + 32 * part);
    }
};

struct Iq2Xs {
    static constexpr int kValues = 256, kBytes = 74, kPart = 16;
    static constexpr bool kOffsets = false;
    static HWY_INLINE void Scales(const std::uint8_t* block, int /*count*/, Tile& tile) {
        PutOddScalesOfNibbles(block + 66, HalfAt(block) * 0.125F, tile.scales);
    }
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        HWY_ALIGN std::uint16_t indices[32];
        HWY_ALIGN std::uint8_t signs[32];
        const Words d;
        const hn::Rebind<std::uint8_t, Words> d8;
        for (int i = 0; i < 32; i += Lanes(d)) {
            const auto words = LoadWords(d, block + 2 + 2 * i);
            hn::Store(hn::And(words, hn::Set(d, std::uint16_t{511})), d, indices + i);
            const auto of_entry = WithParity(d, hn::ShiftRight<9>(words));
            hn::StoreU(hn::DemoteTo(d8, hn::BitCast(hn::RebindToSigned<Words>(), of_entry)), d8, signs + i);
        }
        for (int part = 0; part < 8; ++part)
            PutSignedEntries(grids::kIq2Xs, indices + 4 * part, Load<std::uint32_t>(signs + 4 * part), to + 32 * part);
    }
};

struct Iq2S {
    static constexpr int kValues = 256, kBytes = 82, kPart = 16;
    static constexpr bool kOffsets = false;
    static HWY_INLINE void Scales(const std::uint8_t* block, int /*count*/, Tile& tile) {
        PutOddScalesOfNibbles(block + 74, HalfAt(block) * 0.125F, tile.scales);
    }
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        static constexpr HighBits kHigh = {
            {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3},
            {256, 64, 16, 4, 256, 64, 16, 4, 256, 64, 16, 4, 256, 64, 16, 4},
            0x300};
        HWY_ALIGN std::uint16_t indices[32];
        for (int i = 0; i < 2; ++i)
            PutIndices(block + 2 + 16 * i, Load<std::uint32_t>(block + 66 + 4 * i), kHigh, indices + 16 * i);
        for (int part = 0; part < 8; ++part)
            PutSignedEntries(grids::kIq2S, indices + 4 * part, Load<std::uint32_t>(block + 34 + 4 * part),
                             to + 32 * part);
    }
};

struct Iq3Xxs {
    static constexpr int kValues = 256, kBytes = 98, kPart = 32;
    static constexpr bool kOffsets = false;
    static HWY_INLINE void Scales(const std::uint8_t* block, int /*count*/, Tile& tile) {
        const auto number = [block](int first)
                                HWY_ATTR { return hn::ShiftRight<28>(LoadPartWords<4>(block + 66, first)); };
        PutOddScalesOf(number, HalfAt(block) * 0.25F, tile.scales);
    }
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        HWY_ALIGN std::uint32_t signs[8];
        PutSigns<4>(block + 66, signs);
        for (int part = 0; part < 8; ++part)
            PutSignedEntries(grids::kIq3Xxs, block + 2 + 8 * part, signs[part], to + 32 * part);
    }
};

struct Iq3S {
    static constexpr int kValues = 256, kBytes = 110, kPart = 32;
    static constexpr bool kOffsets = false;
    static HWY_INLINE void Scales(const std::uint8_t* block, int /*count*/, Tile& tile) {
        PutOddScales(SpreadNibbles(Load<std::uint32_t>(block + 106)), HalfAt(block), tile.scales);
    }
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        static constexpr HighBits kHigh = {
            {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
            {256, 128, 64, 32, 16, 8, 4, 2, 256, 128, 64, 32, 16, 8, 4, 2},
            0x100};
        HWY_ALIGN std::uint16_t indices[64];
        for (int i = 0; i < 4; ++i)
            PutIndices(block + 2 + 16 * i, Load<std::uint16_t>(block + 66 + 2 * i), kHigh, indices + 16 * i);
        for (int part = 0; part < 8; ++part)
            PutSignedEntries(grids::kIq3S, indices + 8 * part, Load<std::uint32_t>(block + 74 + 4 * part),
                             to + 32 * part);
    }
};

/// 32 values 8 g + 1 of IQ1, or 8 g - 1 where a bit of `minus` is set. An eighth of the block's scale multiplies them.
HWY_INLINE void PutShiftedEntries(const std::uint16_t* at, std::uint32_t minus, std::int8_t* to) {
    const Bytes d;
    const WordBits below(minus);
    PutEntries(grids::kIq1, at, to, [d, &below](auto entries, int first) HWY_ATTR {
        return hn::Add(hn::ShiftLeft<3>(entries), hn::IfThenElse(below.From(first), SetByte(d, 255), SetByte(d, 1)));
    });
}

struct Iq1S {
    static constexpr int kValues = 256, kBytes = 50, kPart = 32;
    static constexpr bool kOffsets = false;
    static HWY_INLINE void Scales(const std::uint8_t* block, int /*count*/, Tile& tile) {
        const auto number = [block](int first) HWY_ATTR {
            const DoubleWords d;
            const auto words = LoadWords(hn::Rebind<std::uint16_t, DoubleWords>(), block + 34 + 2 * first);
            return hn::And(hn::ShiftRight<12>(hn::PromoteTo(d, words)), hn::Set(d, 7U));
        };
        PutOddScalesOf(number, HalfAt(block) * 0.125F, tile.scales);
    }
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        static constexpr HighBits kHigh = {
            {0, 1, 0, 1, 0, 1, 1, 1, 2, 3, 2, 3, 2, 3, 3, 3, 4, 5, 4, 5, 4, 5, 5, 5, 6, 7, 6, 7, 6, 7, 7, 7},
            {256, 32, 4, 128, 256, 32, 4, 128, 256, 32, 4, 128, 256, 32, 4, 128},
            0x700};
        HWY_ALIGN std::uint16_t indices[32];
        for (int i = 0; i < 2; ++i)
            PutIndices(block + 2 + 16 * i, Load<std::uint64_t>(block + 34 + 8 * i), kHigh, indices + 16 * i);
        for (int part = 0; part < 8; ++part)
            PutShiftedEntries(indices + 4 * part, block[35 + 2 * part] >> 7U != 0 ? ~0U : 0U, to + 32 * part);
    }
};

struct Iq1M {
    static constexpr int kValues = 256, kBytes = 56, kPart = 16;
    static constexpr bool kOffsets = false;
    static HWY_INLINE void Scales(const std::uint8_t* block, int /*count*/, Tile& tile) {
        const auto words = Load<std::uint64_t>(block + 48);
        // The top nibbles of four words are a float16.
        const std::uint64_t nibbles = words >> 12U & 0x000F000F000F000FU;
        const std::uint64_t half = nibbles | nibbles >> 12U | nibbles >> 24U | nibbles >> 36U;
        std::uint8_t bytes[2];
        hwy::CopyBytes<2>(&half, bytes);
        const float scale = HalfAt(bytes) * 0.125F;
        for (unsigned i = 0; i < 2; ++i) {  // of two words, with four fields of 3 bits
            const std::uint64_t both = words >> 32 * i, first = both & 0xFFFU, second = both >> 16U & 0xFFFU;
            std::uint64_t fields = first | second << 32U;
            fields = (fields | fields << 10U) & 0x003F003F003F003FU;
            fields = (fields | fields << 5U) & 0x0707070707070707U;
            PutOddScales(fields, scale, tile.scales + 8 * i);
        }
    }
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        static constexpr HighBits kHigh = {
            {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7},
            {256, 16, 256, 16, 256, 16, 256, 16, 256, 16, 256, 16, 256, 16, 256, 16},
            0x700};
        HWY_ALIGN std::uint16_t indices[32];
        for (int i = 0; i < 2; ++i)
            PutIndices(block + 16 * i, Load<std::uint64_t>(block + 32 + 8 * i), kHigh, indices + 16 * i);
        for (int part = 0; part < 8; part += 2) {
            // The top bits of eight nibbles to whole bytes.
            const std::uint64_t nibbles = SpreadNibbles(Load<std::uint32_t>(block + 32 + 2 * part));
            const std::uint64_t minus = (nibbles >> 3U & 0x0101010101010101U) * 255U;
            PutShiftedEntries(indices + 4 * part, static_cast<std::uint32_t>(minus), to + 32 * part);
            PutShiftedEntries(indices + 4 * part + 4, static_cast<std::uint32_t>(minus >> 32U), to + 32 * part + 32);
        }
    }
};

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
