// SPDX-License-Identifier: GPL-3.0-or-later
// A tile of a row is decoded to bytes in the first-level cache while the tile before it is multiplied: the processor
// has two independent streams of instructions to overlap.
#include "kernels/packed/cpu/product.h"

#include <cstddef>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/packed/cpu/product.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/packed/cpu/grid_blocks-inl.h"
#include "kernels/packed/cpu/large_blocks-inl.h"
#include "kernels/packed/cpu/small_blocks-inl.h"

#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

/// At most as wide as the smallest part.
using F32 = hn::CappedTag<float, 16>;
using V = hn::Vec<F32>;

constexpr std::int64_t kMostTokens = 4;  // their sums fit into the registers of AVX2
constexpr std::int64_t kAheadBytes = 1024, kLineBytes = 64;
/// Rows that read a chunk of x while it stays in the first-level cache.
constexpr std::int64_t kGroupRows = 16;

/// Tiles of a chunk. One token is bound by memory and reads rows as they lie, but for the longest.
constexpr std::int64_t ChunkTiles(std::size_t tokens) {
    return tokens == 1 ? 64 : 16 / static_cast<std::int64_t>(tokens);
}

HWY_INLINE float Sum(V v) {
    return hn::GetLane(hn::SumOfLanes(F32(), v));
}

/// A block type at run time. Code that multiplies depends on `part` and `offsets` alone.
struct Decoder {
    void (*decode)(const std::uint8_t* blocks, int count, Tile& tile) = nullptr;
    std::int64_t values = 0, bytes = 0;  ///< of a block
    std::int64_t part = 0;
    bool offsets = false;

    std::int64_t TileBlocks() const { return kTileValues / values; }
    std::int64_t Tiles(std::int64_t columns) const { return (columns + kTileValues - 1) / kTileValues; }
    /// Parts of a row, filled up to whole tiles.
    std::int64_t Parts(std::int64_t columns) const { return Tiles(columns) * (kTileValues / part); }
};

template <class T>
void DecodeTile(const std::uint8_t* blocks, int count, Tile& tile) {
    constexpr int kBlocks = kTileValues / T::kValues;
    if (count == kBlocks) {
        T::Scales(blocks, kBlocks, tile);
        HWY_UNROLL(8)
        for (int i = 0; i < kBlocks; ++i) T::Values(blocks + i * T::kBytes, tile.values + i * T::kValues);
        return;
    }
    if (T::kOffsets) hwy::ZeroBytes<sizeof tile.offsets>(tile.offsets);
    T::Scales(blocks, count, tile);
    for (int i = 0; i < count; ++i) T::Values(blocks + i * T::kBytes, tile.values + i * T::kValues);
}

template <class T>
constexpr Decoder DecoderOf() {
    return {&DecodeTile<T>, T::kValues, T::kBytes, T::kPart, T::kOffsets};
}

/// decode is null for numbers of 16 bits.
Decoder DecoderFor(PackedType type) {
    switch (type) {
        case PackedType::f16:
        case PackedType::bf16:
            break;
        case PackedType::q4_0:
            return DecoderOf<Q4_0>();
        case PackedType::q4_1:
            return DecoderOf<Q4_1>();
        case PackedType::q5_0:
            return DecoderOf<Q5_0>();
        case PackedType::q5_1:
            return DecoderOf<Q5_1>();
        case PackedType::q8_0:
            return DecoderOf<Q8_0>();
        case PackedType::q2_k:
            return DecoderOf<Q2K>();
        case PackedType::q3_k:
            return DecoderOf<Q3K>();
        case PackedType::q4_k:
            return DecoderOf<Q4K>();
        case PackedType::q5_k:
            return DecoderOf<Q5K>();
        case PackedType::q6_k:
            return DecoderOf<Q6K>();
        case PackedType::iq1_s:
            return DecoderOf<Iq1S>();
        case PackedType::iq1_m:
            return DecoderOf<Iq1M>();
        case PackedType::iq2_xxs:
            return DecoderOf<Iq2Xxs>();
        case PackedType::iq2_xs:
            return DecoderOf<Iq2Xs>();
        case PackedType::iq2_s:
            return DecoderOf<Iq2S>();
        case PackedType::iq3_xxs:
            return DecoderOf<Iq3Xxs>();
        case PackedType::iq3_s:
            return DecoderOf<Iq3S>();
        case PackedType::iq4_nl:
            return DecoderOf<Iq4Nl>();
        case PackedType::iq4_xs:
            return DecoderOf<Iq4Xs>();
        case PackedType::tq1_0:
            return DecoderOf<Tq1_0>();
        case PackedType::tq2_0:
            return DecoderOf<Tq2_0>();
        case PackedType::mxfp4:
            return DecoderOf<Mxfp4>();
        case PackedType::nvfp4:
            return DecoderOf<Nvfp4>();
    }
    return {};
}

/// Decoded tiles of some columns of rows, row after row, one ahead.
class TileReader {
public:
    TileReader(const Decoder& decoder, const std::uint8_t* begin, std::int64_t row_bytes, std::int64_t rows,
               std::int64_t columns)
        : decoder_(decoder),
          row_(begin),
          at_(begin),
          row_bytes_(row_bytes),
          blocks_(columns / decoder.values),
          rows_left_(rows),
          blocks_left_(blocks_) {
        DecodeNext(tiles_[0]);
    }

    /// The next tile, valid until the next call. Not to be called more often than there are tiles.
    HWY_INLINE const Tile& Next() {
        const Tile& tile = tiles_[ready_];
        ready_ ^= 1;
        if (rows_left_ != 0) DecodeNext(tiles_[ready_]);
        return tile;
    }

private:
    HWY_INLINE void DecodeNext(Tile& tile) {
        const std::int64_t count = HWY_MIN(decoder_.TileBlocks(), blocks_left_), bytes = count * decoder_.bytes;
        for (std::int64_t i = 0; i < bytes; i += kLineBytes) hwy::Prefetch(at_ + kAheadBytes + i);
        decoder_.decode(at_, static_cast<int>(count), tile);
        at_ += bytes;
        blocks_left_ -= count;
        if (blocks_left_ == 0) {
            blocks_left_ = blocks_;
            --rows_left_;
            row_ += row_bytes_;
            at_ = row_;
        }
    }

    Tile tiles_[2];
    int ready_ = 0;
    const Decoder decoder_;
    const std::uint8_t *row_, *at_;
    const std::int64_t row_bytes_, blocks_;
    std::int64_t rows_left_, blocks_left_;
};

/// Sums of a row and some tokens, of even and odd parts apart: half as long a chain of additions.
template <std::size_t kTokens>
struct RowSums {
    V parts[2][kTokens];
    hn::Vec<ScaleFloats> offsets[kTokens];
};

/// Some columns of x, and their sums by parts.
struct Tokens {
    const float* x = nullptr;
    std::int64_t stride = 0;
    const float* sums = nullptr;
    std::int64_t sums_stride = 0;
};

/// sums[token] += scale * (values x) of one part.
template <int kPart, std::size_t... K>
HWY_INLINE void AddPart(std::index_sequence<K...>, const std::int8_t* values, float scale, const float* x,
                        std::int64_t stride, V* sums) {
    const F32 d;
    const hn::Rebind<std::int32_t, F32> di;
    const hn::Rebind<std::int8_t, F32> d8;
    const auto value = [=](int i) HWY_ATTR { return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(d8, values + i))); };
    const V first = value(0);
    V part[] = {hn::Mul(first, hn::LoadU(d, x + static_cast<std::int64_t>(K) * stride))...};
    HWY_UNROLL(8)
    for (int i = Lanes(d); i < kPart; i += Lanes(d)) {
        const V next = value(i);
        ((part[K] = hn::MulAdd(next, hn::LoadU(d, x + static_cast<std::int64_t>(K) * stride + i), part[K])), ...);
    }
    const V factor = hn::Set(d, scale);
    ((sums[K] = hn::MulAdd(part[K], factor, sums[K])), ...);
}

template <int kPart, bool kOffsets, std::size_t... K>
HWY_INLINE void AddTile(std::index_sequence<K...> tokens, const Tile& tile, int parts, const Tokens& at,
                        RowSums<sizeof...(K)>& row) {
    V even[] = {row.parts[0][K]...}, odd[] = {row.parts[1][K]...};
    int part = 0;
    for (; part + 2 <= parts; part += 2) {
        const int i = part * kPart;
        AddPart<kPart>(tokens, tile.values + i, tile.scales[part], at.x + i, at.stride, even);
        AddPart<kPart>(tokens, tile.values + i + kPart, tile.scales[part + 1], at.x + i + kPart, at.stride, odd);
    }
    if (part < parts) {
        const int i = part * kPart;
        AddPart<kPart>(tokens, tile.values + i, tile.scales[part], at.x + i, at.stride, even);
    }
    ((row.parts[0][K] = even[K], row.parts[1][K] = odd[K]), ...);
    if constexpr (kOffsets) {
        const ScaleFloats d;
        for (int i = 0; i < kTileValues / kPart; i += Lanes(d)) {
            const auto offset = hn::Load(d, tile.offsets + i);
            ((row.offsets[K] = hn::MulAdd(
                  offset, hn::LoadU(d, at.sums + static_cast<std::int64_t>(K) * at.sums_stride + i), row.offsets[K])),
             ...);
        }
    }
}

/// Rows of tokens first .. first + K.
template <int kPart, bool kOffsets, std::size_t... K>
void BlockRows(std::index_sequence<K...> tokens, const PackedTask& task, const Decoder& decoder, std::int64_t first) {
    constexpr std::int64_t kParts = kTileValues / kPart, kChunk = ChunkTiles(sizeof...(K)) * kTileValues;
    const F32 d;
    const ScaleFloats ds;
    const PackedProduct& product = *task.product;
    const Tokens all{product.x + first * product.x_stride, product.x_stride, nullptr, decoder.Parts(product.columns)};
    const auto* blocks = static_cast<const std::uint8_t*>(product.blocks);
    RowSums<sizeof...(K)> sums[kGroupRows];
    for (std::int64_t begin = task.row_begin; begin < task.row_end; begin += kGroupRows) {
        const std::int64_t rows = HWY_MIN(kGroupRows, task.row_end - begin);
        for (std::int64_t row = 0; row < rows; ++row)
            ((sums[row].parts[0][K] = sums[row].parts[1][K] = hn::Zero(d), sums[row].offsets[K] = hn::Zero(ds)), ...);
        for (std::int64_t column = 0; column < product.columns; column += kChunk) {
            const std::int64_t columns = HWY_MIN(kChunk, product.columns - column);
            TileReader reader(decoder, blocks + begin * task.row_bytes + column / decoder.values * decoder.bytes,
                              task.row_bytes, rows, columns);
            for (std::int64_t row = 0; row < rows; ++row) {
                Tokens at = all;
                at.x += column;
                if (kOffsets) at.sums = task.sums + first * all.sums_stride + column / kPart;
                for (std::int64_t left = columns; left > 0; left -= kTileValues) {
                    const int parts = static_cast<int>(HWY_MIN(kParts, left / kPart));
                    AddTile<kPart, kOffsets>(tokens, reader.Next(), parts, at, sums[row]);
                    at.x += kTileValues;
                    if (kOffsets) at.sums += kParts;
                }
            }
        }
        for (std::int64_t row = 0; row < rows; ++row) {
            const RowSums<sizeof...(K)>& of = sums[row];
            const auto write = [&](std::int64_t token, V parts, hn::Vec<ScaleFloats> offsets) HWY_ATTR {
                float result = Sum(parts);
                if constexpr (kOffsets) result -= hn::GetLane(hn::SumOfLanes(ds, offsets));
                if (product.bias != nullptr) result += product.bias[begin + row];
                product.y[(first + token) * product.y_stride + begin + row] = result;
            };
            (write(static_cast<std::int64_t>(K), hn::Add(of.parts[0][K], of.parts[1][K]), of.offsets[K]), ...);
        }
    }
}

/// Numbers of 16 bits as float32.
struct Halves {
    static HWY_INLINE V Read(F32 d, const std::uint8_t* from) {
        return FromHalf(d, LoadWords(hn::Rebind<std::uint16_t, F32>(), from));
    }
};
struct Brains {
    static HWY_INLINE V Read(F32 d, const std::uint8_t* from) {
        const auto words = LoadWords(hn::Rebind<std::uint16_t, F32>(), from);
        return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<F32>(), words)));
    }
};

template <class T, std::size_t... K>
void NumberRows(std::index_sequence<K...>, const PackedTask& task, std::int64_t first) {
    const F32 d;
    const std::int64_t lanes = Lanes(d);
    const PackedProduct& product = *task.product;
    const float* x = product.x + first * product.x_stride;
    const std::int64_t stride = product.x_stride, columns = product.columns;
    for (std::int64_t row = task.row_begin; row < task.row_end; ++row) {
        const auto* weights = static_cast<const std::uint8_t*>(product.blocks) + row * task.row_bytes;
        V even[] = {(static_cast<void>(K), hn::Zero(d))...}, odd[] = {(static_cast<void>(K), hn::Zero(d))...};
        std::int64_t i = 0;
        for (; i + 2 * lanes <= columns; i += 2 * lanes) {
            hwy::Prefetch(weights + 2 * i + kAheadBytes);
            const V a = T::Read(d, weights + 2 * i), b = T::Read(d, weights + 2 * (i + lanes));
            ((even[K] = hn::MulAdd(a, hn::LoadU(d, x + static_cast<std::int64_t>(K) * stride + i), even[K]),
              odd[K] = hn::MulAdd(b, hn::LoadU(d, x + static_cast<std::int64_t>(K) * stride + i + lanes), odd[K])),
             ...);
        }
        for (; i < columns; i += lanes) {
            const std::int64_t count = HWY_MIN(lanes, columns - i);
            HWY_ALIGN std::uint8_t some[2 * hn::MaxLanes(F32())] = {};
            for (std::int64_t n = 0; n < 2 * count; ++n) some[n] = weights[2 * i + n];
            const V a = T::Read(d, some);
            const auto add = [&](std::int64_t token, V& sum) HWY_ATTR {
                HWY_ALIGN float numbers[hn::MaxLanes(F32())] = {};
                for (std::int64_t n = 0; n < count; ++n) numbers[n] = x[token * stride + i + n];
                sum = hn::MulAdd(a, hn::Load(d, numbers), sum);
            };
            (add(static_cast<std::int64_t>(K), even[K]), ...);
        }
        const auto write = [&](std::int64_t token, V sum) HWY_ATTR {
            const float result = Sum(sum) + (product.bias != nullptr ? product.bias[row] : 0.0F);
            product.y[(first + token) * product.y_stride + row] = result;
        };
        (write(static_cast<std::int64_t>(K), hn::Add(even[K], odd[K])), ...);
    }
}

/// body(index_sequence of tokens, first token) for groups of tokens.
template <class Body>
HWY_INLINE void ForTokens(std::int64_t tokens, const Body& body) {
    std::int64_t first = 0;
    for (; first + kMostTokens <= tokens; first += kMostTokens) body(std::make_index_sequence<kMostTokens>(), first);
    if (first + 2 <= tokens) {
        body(std::make_index_sequence<2>(), first);
        first += 2;
    }
    if (first < tokens) body(std::make_index_sequence<1>(), first);
}

std::int64_t PackedSumsSize(const PackedProduct& product) {
    const Decoder decoder = DecoderFor(product.type);
    return decoder.offsets ? product.tokens * decoder.Parts(product.columns) : 0;
}

void PackedSums(const PackedProduct& product, float* sums) {
    const F32 d;
    const Decoder decoder = DecoderFor(product.type);
    const std::int64_t parts = decoder.Parts(product.columns), inside = product.columns / decoder.part;
    for (std::int64_t token = 0; token < product.tokens; ++token, sums += parts) {
        const float* x = product.x + token * product.x_stride;
        for (std::int64_t part = 0; part < inside; ++part) {
            V sum = hn::Zero(d);
            for (std::int64_t i = 0; i < decoder.part; i += Lanes(d)) sum = hn::Add(sum, hn::LoadU(d, x + i));
            sums[part] = Sum(sum);
            x += decoder.part;
        }
        for (std::int64_t part = inside; part < parts; ++part) sums[part] = 0.0F;
    }
}

void PackedRows(const PackedTask& task) {
    const Decoder decoder = DecoderFor(task.product->type);
    ForTokens(task.product->tokens, [&](auto tokens, std::int64_t first) HWY_ATTR {
        if (task.product->type == PackedType::f16) return NumberRows<Halves>(tokens, task, first);
        if (task.product->type == PackedType::bf16) return NumberRows<Brains>(tokens, task, first);
        if (decoder.part == 16 && decoder.offsets) return BlockRows<16, true>(tokens, task, decoder, first);
        if (decoder.part == 16) return BlockRows<16, false>(tokens, task, decoder, first);
        if (decoder.offsets) return BlockRows<32, true>(tokens, task, decoder, first);
        return BlockRows<32, false>(tokens, task, decoder, first);
    });
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(PackedSumsSize);
HWY_EXPORT(PackedSums);
HWY_EXPORT(PackedRows);

std::int64_t packed_sums_size(const PackedProduct& product) {
    return HWY_DYNAMIC_DISPATCH(PackedSumsSize)(product);
}

void packed_sums(const PackedProduct& product, float* sums) {
    HWY_DYNAMIC_DISPATCH(PackedSums)(product, sums);
}

void packed_rows(const PackedTask& task) {
    HWY_DYNAMIC_DISPATCH(PackedRows)(task);
}

}  // namespace headscope::kernels::cpu
#endif
