// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. What walking the tokens forwards and back share (kernels/cpu/recurrent.h): the numbers
// of a block of kRecurrentBlock tokens, and a tile [dk, TileWidth()] that meets them.
#if defined(HEADSCOPE_KERNELS_CPU_RECURRENT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_RECURRENT_INL_H
#undef HEADSCOPE_KERNELS_CPU_RECURRENT_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_RECURRENT_INL_H
#endif

#include <cmath>
#include <utility>

#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/backward_pass-inl.h"
#include "kernels/flop_counter.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

inline constexpr int kBlock = static_cast<int>(kRecurrentBlock);
inline constexpr std::int64_t kGroupBlocks = 4;  // that are made ready together, for one tile after another
inline constexpr std::int64_t kGroup = kGroupBlocks * kRecurrentBlock;

// With AVX-512 the sums of two vectors' columns with four keys and four queries are half of the registers.
#if HWY_TARGET <= HWY_AVX3
inline constexpr int kTileVectors = 2;
#else
inline constexpr int kTileVectors = 1;
#endif
HWY_INLINE std::int64_t TileWidth() {
    return kTileVectors * static_cast<std::int64_t>(hn::Lanes(F32()));
}

/// Numbers of a block, dk in whole vectors (stride). Token t decays by between[t] before it, between[kBlock] is what
/// comes after the last.
struct Block {
    std::int64_t tokens = 0;
    float* keys = nullptr;     ///< [stride, kBlock] as the tile before the block meets them
    float* queries = nullptr;  ///< likewise
    float* writes = nullptr;   ///< [stride, kBlock] keys as they lie in the tile after the block
    float* decay = nullptr;    ///< [stride] of the tile
    float weight[kBlock];      ///< w
    float of_keys[kBlock][kBlock], of_queries[kBlock][kBlock];  ///< [t][s]: token t with what s has written
};
constexpr std::int64_t block_floats(std::int64_t stride) {
    return (3 * kRecurrentBlock + 1) * stride;
}
HWY_INLINE void PlaceBlock(float* at, std::int64_t stride, Block& block) {
    block.keys = at;
    block.queries = at + kBlock * stride;
    block.writes = at + 2 * kBlock * stride;
    block.decay = at + 3 * kBlock * stride;
}

/// From rows [kBlock][stride] of keys and queries (null: none) and [kBlock + 1][stride] of decays; rows beyond the
/// block's tokens are 0, and their decays 1. `faded` (null: none) is multiplied into what queries meet.
HWY_INLINE void MakeBlock(const float* HWY_RESTRICT keys, const float* HWY_RESTRICT queries,
                          const float* HWY_RESTRICT between, const float* HWY_RESTRICT faded, std::int64_t stride,
                          Block& block) {
    const F32 d;
    V of_keys[kBlock][kBlock], of_queries[kBlock][kBlock];
    for (int t = 0; t < kBlock; ++t)
        for (int s = 0; s < kBlock; ++s) of_keys[t][s] = of_queries[t][s] = hn::Zero(d);
    for (std::int64_t c = 0; c < stride; c += static_cast<std::int64_t>(hn::Lanes(d))) {
        V key[kBlock], query[kBlock], decay[kBlock + 1], x[kBlock];
        for (int t = 0; t < kBlock; ++t) {
            x[t] = key[t] = hn::Load(d, keys + t * stride + c);
            query[t] = queries == nullptr ? hn::Zero(d) : hn::Load(d, queries + t * stride + c);
        }
        for (int t = 0; t <= kBlock; ++t) decay[t] = hn::Load(d, between + t * stride + c);
        for (int t = 0; t < kBlock; ++t) {
            for (int s = 0; s < t; ++s) {
                x[s] = hn::Mul(x[s], decay[t]);
                of_keys[t][s] = hn::MulAdd(key[t], x[s], of_keys[t][s]);
                of_queries[t][s] = hn::MulAdd(query[t], x[s], of_queries[t][s]);
            }
            of_queries[t][t] = hn::MulAdd(query[t], x[t], of_queries[t][t]);
        }
        V all = hn::Set(d, 1.0f);
        const V since = faded == nullptr ? all : hn::Load(d, faded + c);
        for (int t = 0; t < kBlock; ++t) {
            all = hn::Mul(all, decay[t]);
            key[t] = hn::Mul(key[t], all);
            query[t] = hn::Mul(hn::Mul(query[t], all), since);
            x[t] = hn::Mul(x[t], decay[kBlock]);
        }
        hn::StoreInterleaved4(key[0], key[1], key[2], key[3], d, block.keys + kBlock * c);
        hn::StoreInterleaved4(query[0], query[1], query[2], query[3], d, block.queries + kBlock * c);
        hn::StoreInterleaved4(x[0], x[1], x[2], x[3], d, block.writes + kBlock * c);
        hn::Store(hn::Mul(all, decay[kBlock]), d, block.decay + c);
    }
    for (int t = 0; t < kBlock; ++t) {
        for (int s = 0; s <= t; ++s) {
            block.of_keys[t][s] = Sum(d, of_keys[t][s]);
            block.of_queries[t][s] = Sum(d, of_queries[t][s]);
        }
    }
}

/// sums [T][TileWidth()] = rows' numbers [size][kBlock] with the tile, for one or two such (second null with one).
template <int T, bool kTwo>
HWY_INLINE void MeetTile(const float* HWY_RESTRICT tile, std::int64_t stride, std::int64_t size,
                         const float* HWY_RESTRICT first, const float* HWY_RESTRICT second,
                         float* HWY_RESTRICT first_sums, float* HWY_RESTRICT second_sums) {
    const F32 d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    V one[T][kTileVectors], two[T][kTileVectors];
    for (int t = 0; t < T; ++t)
        for (int v = 0; v < kTileVectors; ++v) one[t][v] = two[t][v] = hn::Zero(d);
    for (std::int64_t r = 0; r < size; ++r, tile += stride, first += kBlock) {
        V row[kTileVectors];
        for (int v = 0; v < kTileVectors; ++v) row[v] = hn::LoadU(d, tile + v * lanes);
        for (int t = 0; t < T; ++t) {
            const V x = hn::Set(d, first[t]);
            for (int v = 0; v < kTileVectors; ++v) one[t][v] = hn::MulAdd(x, row[v], one[t][v]);
        }
        if constexpr (kTwo) {
            for (int t = 0; t < T; ++t) {
                const V x = hn::Set(d, second[t]);
                for (int v = 0; v < kTileVectors; ++v) two[t][v] = hn::MulAdd(x, row[v], two[t][v]);
            }
            second += kBlock;
        }
    }
    for (int t = 0; t < T; ++t) {
        for (int v = 0; v < kTileVectors; ++v) {
            hn::Store(one[t][v], d, first_sums + (t * kTileVectors + v) * lanes);
            if constexpr (kTwo) hn::Store(two[t][v], d, second_sums + (t * kTileVectors + v) * lanes);
        }
    }
}

/// tile [size][stride] <- decay tile + writes times u [T][TileWidth()].
template <int T>
HWY_INLINE void WriteTile(float* HWY_RESTRICT tile, std::int64_t stride, std::int64_t size, const Block& block,
                          const float* HWY_RESTRICT u) {
    const F32 d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    V written[T][kTileVectors];
    for (int t = 0; t < T; ++t)
        for (int v = 0; v < kTileVectors; ++v) written[t][v] = hn::Load(d, u + (t * kTileVectors + v) * lanes);
    const float *HWY_RESTRICT writes = block.writes, *HWY_RESTRICT decay = block.decay;
    for (std::int64_t r = 0; r < size; ++r, tile += stride, writes += kBlock) {
        const V kept = hn::Set(d, decay[r]);
        V row[kTileVectors];
        for (int v = 0; v < kTileVectors; ++v) row[v] = hn::Mul(kept, hn::LoadU(d, tile + v * lanes));
        for (int t = 0; t < T; ++t) {
            const V x = hn::Set(d, writes[t]);
            for (int v = 0; v < kTileVectors; ++v) row[v] = hn::MulAdd(x, written[t][v], row[v]);
        }
        for (int v = 0; v < kTileVectors; ++v) hn::StoreU(row[v], d, tile + v * lanes);
    }
}

HWY_INLINE float NumberAt(const HeadMatrix& m, std::int64_t head, std::int64_t token) {
    return static_cast<const float*>(m.data)[head * m.head_stride + token * m.row_stride];
}

/// e^g of a token in all `stride` numbers of `to`; 1 without decay and beyond the key's size.
HWY_INLINE void ReadDecay(const RecurrentHead& head, std::int64_t token, std::int64_t stride, float* HWY_RESTRICT to) {
    const F32 d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    if (head.channels) {
        CopyRows(head.log_decay, head.head, token, 1, 0, head.real, head.key_size, to, stride);
        for (std::int64_t c = 0; c < stride; c += lanes) hn::Store(hn::Exp(d, hn::Load(d, to + c)), d, to + c);
        return;
    }
    const float decay = head.log_decay.data == nullptr ? 1.0f : std::exp(NumberAt(head.log_decay, head.head, token));
    for (std::int64_t c = 0; c < stride; c += lanes) hn::Store(hn::Set(d, decay), d, to + c);
}

HWY_INLINE void Fill(float* HWY_RESTRICT to, std::int64_t count, float x) {
    for (std::int64_t c = 0; c < count; ++c) to[c] = x;
}

HWY_INLINE bool IsCancelled(const RecurrentHead& head) {
    return head.cancel != nullptr && head.cancel->load(std::memory_order_relaxed);
}

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
