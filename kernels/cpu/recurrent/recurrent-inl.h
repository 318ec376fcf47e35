// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. What walking the tokens forwards and back share (kernels/cpu/recurrent/recurrent.h):
// the numbers of a block of kRecurrentBlock tokens, and a tile [dk, TileWidth()] that meets them.
#if defined(HEADSCOPE_KERNELS_CPU_RECURRENT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_RECURRENT_INL_H
#undef HEADSCOPE_KERNELS_CPU_RECURRENT_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_RECURRENT_INL_H
#endif

#include <cmath>
#include <utility>

#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/attention/backward_pass-inl.h"
#include "kernels/cpu/attention/values-inl.h"
#include "kernels/flop_counter.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

inline constexpr int kBlock = static_cast<int>(kRecurrentBlock);
inline constexpr std::int64_t kGroupBlocks =
    kRecurrentGroup / kRecurrentBlock;  // that are made ready together, for one tile after another
inline constexpr std::int64_t kGroup = kRecurrentGroup;

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
    float of_keys[kBlock * (kBlock + 1) / 2],
        of_queries[kBlock * (kBlock + 1) / 2];  ///< PairAt(t, s): t with what s wrote
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

template <std::size_t T>
using Tokens = std::make_index_sequence<T>;

/// Numbers [t][s], s <= t, of a block one behind the other.
constexpr std::size_t PairAt(std::size_t t, std::size_t s) {
    return t * (t + 1) / 2 + s;
}
inline constexpr std::size_t kPairs = PairAt(kBlock, 0);

/// Token T with what the earlier ones S write; x: their keys, decayed up to T.
template <std::size_t T, std::size_t... S>
HWY_INLINE void MeetEarlier(std::index_sequence<S...>, [[maybe_unused]] V decay, [[maybe_unused]] V key, V query,
                            V* HWY_RESTRICT x, V* HWY_RESTRICT of_keys, V* HWY_RESTRICT of_queries) {
    ((x[S] = hn::Mul(x[S], decay), of_keys[PairAt(T, S)] = hn::MulAdd(key, x[S], of_keys[PairAt(T, S)]),
      of_queries[PairAt(T, S)] = hn::MulAdd(query, x[S], of_queries[PairAt(T, S)])),
     ...);
    of_queries[PairAt(T, T)] = hn::MulAdd(query, x[T], of_queries[PairAt(T, T)]);
}

template <std::size_t... T, std::size_t... P>
HWY_INLINE void MakeBlock(std::index_sequence<T...>, std::index_sequence<P...>, const float* HWY_RESTRICT keys,
                          const float* HWY_RESTRICT queries, const float* HWY_RESTRICT between,
                          const float* HWY_RESTRICT faded, std::int64_t stride, Block& block) {
    const F32 d;
    V of_keys[kPairs], of_queries[kPairs];
    ((of_keys[P] = of_queries[P] = hn::Zero(d)), ...);
    for (std::int64_t c = 0; c < stride; c += static_cast<std::int64_t>(hn::Lanes(d))) {
        const auto row = [stride, c](std::size_t t) { return static_cast<std::int64_t>(t) * stride + c; };
        V key[kBlock] = {hn::Load(d, keys + row(T))...}, x[kBlock] = {key[T]...};
        V query[kBlock] = {(queries == nullptr ? hn::Zero(d) : hn::Load(d, queries + row(T)))...};
        const V decay[kBlock] = {hn::Load(d, between + row(T))...}, last = hn::Load(d, between + row(kBlock));
        (MeetEarlier<T>(Tokens<T>(), decay[T], key[T], query[T], x, of_keys, of_queries), ...);
        const V since = faded == nullptr ? hn::Set(d, 1.0f) : hn::Load(d, faded + c);
        V all = hn::Set(d, 1.0f);
        ((all = hn::Mul(all, decay[T]), key[T] = hn::Mul(key[T], all),
          query[T] = hn::Mul(hn::Mul(query[T], all), since), x[T] = hn::Mul(x[T], last)),
         ...);
        hn::StoreInterleaved4(key[0], key[1], key[2], key[3], d, block.keys + kBlock * c);
        hn::StoreInterleaved4(query[0], query[1], query[2], query[3], d, block.queries + kBlock * c);
        hn::StoreInterleaved4(x[0], x[1], x[2], x[3], d, block.writes + kBlock * c);
        hn::Store(hn::Mul(all, last), d, block.decay + c);
    }
    ((block.of_keys[P] = Sum(d, of_keys[P]), block.of_queries[P] = Sum(d, of_queries[P])), ...);
}

/// From rows [kBlock][stride] of keys and queries (null: none) and [kBlock + 1][stride] of decays; rows beyond the
/// block's tokens are 0, and their decays 1. `faded` (null: none) is multiplied into what queries meet.
HWY_INLINE void MakeBlock(const float* keys, const float* queries, const float* between, const float* faded,
                          std::int64_t stride, Block& block) {
    MakeBlock(Tokens<kBlock>(), std::make_index_sequence<kPairs>(), keys, queries, between, faded, stride, block);
}

/// sum + numbers [S] times written [S], token by token.
template <std::size_t... S>
HWY_INLINE V AddEarlier(std::index_sequence<S...>, [[maybe_unused]] const float* HWY_RESTRICT numbers,
                        [[maybe_unused]] const V* HWY_RESTRICT written, V sum) {
    ((sum = hn::MulAdd(hn::Set(F32(), numbers[S]), written[S], sum)), ...);
    return sum;
}

/// The vectors of a tile's row, and of one token's sums.
struct TileRow {
    V left;
#if HWY_TARGET <= HWY_AVX3
    V right;
#endif
};
HWY_INLINE TileRow ZeroTile(F32 d) {
#if HWY_TARGET <= HWY_AVX3
    return {hn::Zero(d), hn::Zero(d)};
#else
    return {hn::Zero(d)};
#endif
}
HWY_INLINE TileRow LoadTile(F32 d, const float* from) {
#if HWY_TARGET <= HWY_AVX3
    return {hn::LoadU(d, from), hn::LoadU(d, from + hn::Lanes(d))};
#else
    return {hn::LoadU(d, from)};
#endif
}
HWY_INLINE void StoreTile(F32 d, const TileRow& row, float* to) {
    hn::StoreU(row.left, d, to);
#if HWY_TARGET <= HWY_AVX3
    hn::StoreU(row.right, d, to + hn::Lanes(d));
#endif
}
HWY_INLINE TileRow Scaled(V x, const TileRow& row) {
#if HWY_TARGET <= HWY_AVX3
    return {hn::Mul(x, row.left), hn::Mul(x, row.right)};
#else
    return {hn::Mul(x, row.left)};
#endif
}
HWY_INLINE void AddScaled(V x, const TileRow& row, TileRow& sum) {
    sum.left = hn::MulAdd(x, row.left, sum.left);
#if HWY_TARGET <= HWY_AVX3
    sum.right = hn::MulAdd(x, row.right, sum.right);
#endif
}

/// sums [tokens][TileWidth()] = rows' numbers [size][kBlock] with the tile, for one or two such (second null with one).
template <bool kTwo, std::size_t... T>
HWY_INLINE void MeetTile(std::index_sequence<T...>, const float* HWY_RESTRICT tile, std::int64_t stride,
                         std::int64_t size, const float* HWY_RESTRICT first, const float* HWY_RESTRICT second,
                         float* HWY_RESTRICT first_sums, float* HWY_RESTRICT second_sums) {
    const F32 d;
    const std::int64_t width = TileWidth();
    TileRow one[sizeof...(T)], two[sizeof...(T)];
    ((one[T] = two[T] = ZeroTile(d)), ...);
    for (std::int64_t r = 0; r < size; ++r, tile += stride, first += kBlock) {
        const TileRow row = LoadTile(d, tile);
        (AddScaled(hn::Set(d, first[T]), row, one[T]), ...);
        if constexpr (kTwo) {
            (AddScaled(hn::Set(d, second[T]), row, two[T]), ...);
            second += kBlock;
        }
    }
    (StoreTile(d, one[T], first_sums + static_cast<std::int64_t>(T) * width), ...);
    if constexpr (kTwo) (StoreTile(d, two[T], second_sums + static_cast<std::int64_t>(T) * width), ...);
}

/// tile [size][stride] <- decay tile + writes times u [tokens][TileWidth()].
template <std::size_t... T>
HWY_INLINE void WriteTile(std::index_sequence<T...>, float* HWY_RESTRICT tile, std::int64_t stride, std::int64_t size,
                          const Block& block, const float* HWY_RESTRICT u) {
    const F32 d;
    const std::int64_t width = TileWidth();
    const TileRow written[sizeof...(T)] = {LoadTile(d, u + static_cast<std::int64_t>(T) * width)...};
    const float *HWY_RESTRICT writes = block.writes, *HWY_RESTRICT decay = block.decay;
    for (std::int64_t r = 0; r < size; ++r, tile += stride, writes += kBlock) {
        TileRow row = Scaled(hn::Set(d, decay[r]), LoadTile(d, tile));
        (AddScaled(hn::Set(d, writes[T]), written[T], row), ...);
        StoreTile(d, row, tile);
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
