// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. Decoders of blocks of 256 values. A decoder has
//   kValues, kBytes   of a block
//   kPart             values with one scale
//   kOffsets          true: Scales() writes offsets
//   Scales(blocks, count, tile), Values(block, to)
#if defined(HEADSCOPE_KERNELS_CPU_PACKED_LARGE_BLOCKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_PACKED_LARGE_BLOCKS_INL_H
#undef HEADSCOPE_KERNELS_CPU_PACKED_LARGE_BLOCKS_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_PACKED_LARGE_BLOCKS_INL_H
#endif

#include "kernels/packed/cpu/decode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

/// Scales and minima of 6 bits each, of Q4_K and Q5_K.
HWY_INLINE void PutScalesAndMinima(const std::uint8_t* block, Tile& tile) {
    const auto a = Load<std::uint32_t>(block + 4), b = Load<std::uint32_t>(block + 8);
    const auto c = Load<std::uint32_t>(block + 12);
    const std::uint64_t scale = (c & 0x0F0F0F0FU) | ((a >> 2U) & 0x30303030U);
    const std::uint64_t minimum = ((c >> 4U) & 0x0F0F0F0FU) | ((b >> 2U) & 0x30303030U);
    PutScales<std::uint8_t>(scale << 32U | (a & 0x3F3F3F3FU), 0, HalfAt(block), tile.scales);
    PutScales<std::uint8_t>(minimum << 32U | (b & 0x3F3F3F3FU), 0, HalfAt(block + 2), tile.offsets);
}

struct Q2K {
    static constexpr int kValues = 256, kBytes = 84, kPart = 16;
    static constexpr bool kOffsets = true;
    static HWY_INLINE void Scales(const std::uint8_t* block, int /*count*/, Tile& tile) {
        constexpr std::uint64_t kLow = 0x0F0F0F0F0F0F0F0FU;
        const float scale = HalfAt(block + 80), minimum = HalfAt(block + 82);
        for (int i = 0; i < 16; i += 8) {
            const auto bytes = Load<std::uint64_t>(block + i);
            PutScales<std::uint8_t>(bytes & kLow, 0, scale, tile.scales + i);
            PutScales<std::uint8_t>((bytes >> 4U) & kLow, 0, minimum, tile.offsets + i);
        }
    }
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        const Bytes d;
        for (int half = 0; half < 2; ++half) {
            for (int i = 0; i < 32; i += Lanes(d)) {
                auto bytes = hn::LoadU(d, block + 16 + 32 * half + i);
                for (int field = 0; field < 4; ++field) {
                    PutBytes(d, hn::And(bytes, SetByte(d, 3)), to + 128 * half + 32 * field + i);
                    bytes = hn::ShiftRight<2>(bytes);
                }
            }
        }
    }
};

struct Q3K {
    static constexpr int kValues = 256, kBytes = 110, kPart = 16;
    static constexpr bool kOffsets = false;
    static HWY_INLINE void Scales(const std::uint8_t* block, int /*count*/, Tile& tile) {
        constexpr std::uint64_t kLow = 0x0F0F0F0F0F0F0F0FU, kHigh = 0x3030303030303030U;
        const auto low = Load<std::uint64_t>(block + 96);
        const std::uint64_t word = Load<std::uint32_t>(block + 104);
        // Fields 0 and 1, then 2 and 3, at bits 4 and 5.
        const std::uint64_t first = word << 34U | word << 4U, second = word >> 2U << 32U | word;
        const float scale = HalfAt(block + 108);
        PutScales<std::uint8_t>((low & kLow) | (first & kHigh), 32, scale, tile.scales);
        PutScales<std::uint8_t>(((low >> 4U) & kLow) | (second & kHigh), 32, scale, tile.scales + 8);
    }
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        const Bytes d;
        for (int i = 0; i < 32; i += Lanes(d)) {
            const auto high = hn::LoadU(d, block + i);
            for (int half = 0; half < 2; ++half) {
                auto bytes = hn::LoadU(d, block + 32 + 32 * half + i);
                for (int field = 0; field < 4; ++field) {
                    // A bit that is not set takes 4 off.
                    const auto is_set = hn::TestBit(high, SetByte(d, 1 << (4 * half + field)));
                    const auto top = hn::IfThenZeroElse(is_set, SetByte(d, 0xFC));
                    PutBytes(d, hn::Or(hn::And(bytes, SetByte(d, 3)), top), to + 128 * half + 32 * field + i);
                    bytes = hn::ShiftRight<2>(bytes);
                }
            }
        }
    }
};

struct Q4K {
    static constexpr int kValues = 256, kBytes = 144, kPart = 32;
    static constexpr bool kOffsets = true;
    static HWY_INLINE void Scales(const std::uint8_t* block, int /*count*/, Tile& tile) {
        PutScalesAndMinima(block, tile);
    }
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        const Bytes d;
        for (int pair = 0; pair < 4; ++pair) {
            for (int i = 0; i < 32; i += Lanes(d)) {
                const auto bytes = hn::LoadU(d, block + 16 + 32 * pair + i);
                PutBytes(d, hn::And(bytes, SetByte(d, 15)), to + 64 * pair + i);
                PutBytes(d, hn::ShiftRight<4>(bytes), to + 64 * pair + 32 + i);
            }
        }
    }
};

struct Q5K {
    static constexpr int kValues = 256, kBytes = 176, kPart = 32;
    static constexpr bool kOffsets = true;
    static HWY_INLINE void Scales(const std::uint8_t* block, int /*count*/, Tile& tile) {
        PutScalesAndMinima(block, tile);
    }
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        const Bytes d;
        for (int i = 0; i < 32; i += Lanes(d)) {
            auto high = hn::LoadU(d, block + 16 + i);
            for (int pair = 0; pair < 4; ++pair) {
                const auto bytes = hn::LoadU(d, block + 48 + 32 * pair + i);
                const auto first = hn::And(hn::ShiftLeft<4>(high), SetByte(d, 16));
                const auto second = hn::And(hn::ShiftLeft<3>(high), SetByte(d, 16));
                PutBytes(d, hn::Or(hn::And(bytes, SetByte(d, 15)), first), to + 64 * pair + i);
                PutBytes(d, hn::Or(hn::ShiftRight<4>(bytes), second), to + 64 * pair + 32 + i);
                high = hn::ShiftRight<2>(high);
            }
        }
    }
};

struct Q6K {
    static constexpr int kValues = 256, kBytes = 210, kPart = 16;
    static constexpr bool kOffsets = false;
    static HWY_INLINE void Scales(const std::uint8_t* block, int /*count*/, Tile& tile) {
        const float scale = HalfAt(block + 208);
        for (int i = 0; i < 16; i += 8)
            PutScales<std::int8_t>(Load<std::uint64_t>(block + 192 + i), 0, scale, tile.scales + i);
    }
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        const Bytes d;
        for (int half = 0; half < 2; ++half) {
            for (int i = 0; i < 32; i += Lanes(d)) {
                const auto a = hn::LoadU(d, block + 64 * half + i), b = hn::LoadU(d, block + 64 * half + 32 + i);
                const auto high = hn::LoadU(d, block + 128 + 32 * half + i);
                const auto put = [&](int field, auto nibbles, auto tops) HWY_ATTR {
                    const auto whole = hn::Or(nibbles, hn::And(tops, SetByte(d, 48)));
                    PutBytes(d, hn::Sub(whole, SetByte(d, 32)), to + 128 * half + 32 * field + i);
                };
                put(0, hn::And(a, SetByte(d, 15)), hn::ShiftLeft<4>(high));
                put(1, hn::And(b, SetByte(d, 15)), hn::ShiftLeft<2>(high));
                put(2, hn::ShiftRight<4>(a), high);
                put(3, hn::ShiftRight<4>(b), hn::ShiftRight<2>(high));
            }
        }
    }
};

struct Iq4Xs {
    static constexpr int kValues = 256, kBytes = 136, kPart = 32;
    static constexpr bool kOffsets = false;
    static HWY_INLINE void Scales(const std::uint8_t* block, int /*count*/, Tile& tile) {
        const std::uint64_t low = SpreadNibbles(Load<std::uint32_t>(block + 4));
        std::uint64_t high = Load<std::uint16_t>(block + 2);
        // Field j of 2 bits to byte j.
        high = (high | high << 24U) & 0x000000FF000000FFU;
        high = (high | high << 12U) & 0x000F000F000F000FU;
        high = (high | high << 6U) & 0x0303030303030303U;
        PutScales<std::uint8_t>(low | high << 4U, 32, HalfAt(block), tile.scales);
    }
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        for (int part = 0; part < 8; ++part) PutLevels(kUnevenLevels, block + 8 + 16 * part, to + 32 * part);
    }
};

struct Tq1_0 {
    static constexpr int kValues = 256, kBytes = 54, kPart = 32;
    static constexpr bool kOffsets = false;
    static HWY_INLINE void Scales(const std::uint8_t* block, int /*count*/, Tile& tile) {
        const float scale = HalfAt(block + 52);
        for (int i = 0; i < 8; ++i) tile.scales[i] = scale;
    }
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        PutTrits<32, 5>(Bytes(), block, to);
        PutTrits<16, 5>(HalfBytes(), block + 32, to + 160);
        PutTrits<4, 4>(hn::CappedTag<std::uint8_t, 4>(), block + 48, to + 240);
    }

private:
    /// Trit n of byte b is (b 3^n mod 256) 3 / 256 - 1.
    template <int kCount, int kTrits, class D>
    static HWY_INLINE void PutTrits(D d, const std::uint8_t* from, std::int8_t* to) {
        for (int i = 0; i < kCount; i += Lanes(d)) {
            auto bytes = hn::LoadU(d, from + i);
            for (int trit = 0; trit < kTrits; ++trit) {
                const auto is_one = hn::VecFromMask(d, hn::Gt(bytes, SetByte(d, 85)));
                const auto is_two = hn::VecFromMask(d, hn::Gt(bytes, SetByte(d, 170)));
                PutBytes(d, hn::Sub(hn::Sub(SetByte(d, 255), is_one), is_two), to + kCount * trit + i);
                bytes = hn::Add(bytes, hn::Add(bytes, bytes));
            }
        }
    }
};

struct Tq2_0 {
    static constexpr int kValues = 256, kBytes = 66, kPart = 32;
    static constexpr bool kOffsets = false;
    static HWY_INLINE void Scales(const std::uint8_t* block, int /*count*/, Tile& tile) {
        const float scale = HalfAt(block + 64);
        for (int i = 0; i < 8; ++i) tile.scales[i] = scale;
    }
    static HWY_INLINE void Values(const std::uint8_t* block, std::int8_t* to) {
        const Bytes d;
        for (int half = 0; half < 2; ++half) {
            for (int i = 0; i < 32; i += Lanes(d)) {
                auto bytes = hn::LoadU(d, block + 32 * half + i);
                for (int field = 0; field < 4; ++field) {
                    const auto code = hn::And(bytes, SetByte(d, 3));
                    PutBytes(d, hn::Sub(code, SetByte(d, 1)), to + 128 * half + 32 * field + i);
                    bytes = hn::ShiftRight<2>(bytes);
                }
            }
        }
    }
};

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
