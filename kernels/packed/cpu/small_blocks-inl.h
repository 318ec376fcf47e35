// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. Decoders of blocks of 32 and 64 values, several of them in a tile; members as in
// large_blocks-inl.h.
#if defined(HEADSCOPE_KERNELS_CPU_PACKED_SMALL_BLOCKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_PACKED_SMALL_BLOCKS_INL_H
#undef HEADSCOPE_KERNELS_CPU_PACKED_SMALL_BLOCKS_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_PACKED_SMALL_BLOCKS_INL_H
#endif

#include "kernels/packed/cpu/decode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

/// 32 values of a float16 scale, which begins the block.
template <int kBlockBytes>
struct Small {
    static constexpr int kValues = 32, kBytes = kBlockBytes, kPart = 32;
    static constexpr bool kOffsets = false;
    static HWY_INLINE void Scales(const std::uint8_t* blocks, int count, Tile& tile) {
        for (int i = 0; i < count; ++i) tile.scales[i] = HalfAt(blocks + i * kBytes);
    }
};

/// The same with a float16 minimum after the scale.
template <int kBlockBytes>
struct SmallWithMinimum : Small<kBlockBytes> {
    static constexpr bool kOffsets = true;
    static HWY_INLINE void Scales(const std::uint8_t* blocks, int count, Tile& tile) {
        Small<kBlockBytes>::Scales(blocks, count, tile);
        for (int i = 0; i < count; ++i) tile.offsets[i] = -HalfAt(blocks + i * kBlockBytes + 2);
    }
};

struct Q4_0 : Small<18> {
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        const Bytes d;
        PutNibbles(block + 2, to, [d](auto nibbles, int) HWY_ATTR { return hn::Sub(nibbles, SetByte(d, 8)); });
    }
};

struct Q4_1 : SmallWithMinimum<20> {
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        PutNibbles(block + 4, to, [](auto nibbles, int) HWY_ATTR { return nibbles; });
    }
};

/// Nibbles with a fifth bit from a word of 32: nibble | (bit set ? kSet : kClear).
template <int kSet, int kClear>
HWY_INLINE void PutNibblesAndBits(const std::uint8_t* bits, const std::uint8_t* from, std::int8_t* to) {
    const Bytes d;
    const WordBits word(Load<std::uint32_t>(bits));
    PutNibbles(from, to, [d, &word](auto nibbles, int first) HWY_ATTR {
        return hn::Or(nibbles, hn::IfThenElse(word.From(first), SetByte(d, kSet), SetByte(d, kClear)));
    });
}

struct Q5_0 : Small<22> {
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        PutNibblesAndBits<0, 0xF0>(block + 2, block + 6, to);  // a nibble less 16 without the bit
    }
};

struct Q5_1 : SmallWithMinimum<24> {
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        PutNibblesAndBits<16, 0>(block + 4, block + 8, to);
    }
};

struct Q8_0 : Small<34> {
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        const Bytes d;
        for (int i = 0; i < 32; i += Lanes(d)) PutBytes(d, hn::LoadU(d, block + 2 + i), to + i);
    }
};

struct Iq4Nl : Small<18> {
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        PutLevels(kUnevenLevels, block + 2, to);
    }
};

struct Mxfp4 {
    static constexpr int kValues = 32, kBytes = 17, kPart = 32;
    static constexpr bool kOffsets = false;
    static HWY_INLINE void Scales(const std::uint8_t* blocks, int count, Tile& tile) {
        for (int i = 0; i < count; ++i) {  // 2^(e - 128)
            const std::uint32_t e = blocks[i * kBytes];
            const std::uint32_t bits = e < 2 ? 0x00200000U << e : (e - 1) << 23U;
            hwy::CopyBytes<4>(&bits, tile.scales + i);
        }
    }
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) { PutLevels(kTwiceE2m1, block + 1, to); }
};

struct Nvfp4 {
    static constexpr int kValues = 64, kBytes = 36, kPart = 16;
    static constexpr bool kOffsets = false;
    static HWY_INLINE void Scales(const std::uint8_t* blocks, int count, Tile& tile) {
        for (int i = 0; i < count; i += 2) {
            const std::uint64_t second = i + 1 < count ? Load<std::uint32_t>(blocks + (i + 1) * kBytes) : 0;
            PutHalvesOfE4m3(second << 32U | Load<std::uint32_t>(blocks + i * kBytes), tile.scales + 4 * i);
        }
    }
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        // 8 bytes of a part: low nibbles, then high ones.
        HWY_ALIGN std::int8_t nibbles[32];
        for (int pair = 0; pair < 2; ++pair) {
            PutLevels(kTwiceE2m1, block + 4 + 16 * pair, nibbles);
            for (int part = 0; part < 2; ++part) {
                hwy::CopyBytes<8>(nibbles + 8 * part, to + 32 * pair + 16 * part);
                hwy::CopyBytes<8>(nibbles + 16 + 8 * part, to + 32 * pair + 16 * part + 8);
            }
        }
    }

private:
    /// Half of eight unsigned e4m3; NaN becomes 0. Read as float16, their bits give numbers that are 2^8 smaller.
    static HWY_INLINE void PutHalvesOfE4m3(std::uint64_t bytes, float* to) {
        const ScaleFloats d;
        const hn::Rebind<std::uint16_t, ScaleFloats> d16;
        const hn::Rebind<std::uint8_t, ScaleFloats> d8;
        std::uint8_t from[8];
        hwy::CopyBytes<8>(&bytes, from);
        for (int i = 0; i < 8; i += Lanes(d)) {
            const auto word = hn::PromoteTo(d16, hn::LoadU(d8, from + i));
            const auto number = hn::IfThenZeroElse(hn::Eq(word, hn::Set(d16, std::uint16_t{0x7F})), word);
            const auto half = hn::ShiftLeft<7>(hn::And(number, hn::Set(d16, std::uint16_t{0x7F})));
            hn::Store(hn::Mul(FromHalf(d, half), hn::Set(d, 128.0F)), d, to + i);
        }
    }
};

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
