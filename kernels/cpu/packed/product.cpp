// SPDX-License-Identifier: GPL-3.0-or-later
// A tile of a row is decoded to bytes in the first-level cache while the tile before it is multiplied: the processor has
// two independent streams of instructions to overlap.
#include "kernels/cpu/packed/product.h"

#include <cstddef>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/packed/product.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/packed/large_blocks-inl.h"
#include "kernels/cpu/packed/small_blocks-inl.h"

#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

/// At most as wide as the smallest part.
using F32 = hn::CappedTag<float, 16>;
using V = hn::Vec<F32>;

constexpr int kMostTokens = 4;  // whose sums fit into the registers of AVX2
constexpr std::int64_t kAheadBytes = 1024, kLineBytes = 64;

HWY_INLINE float Sum(V v) {
    return hn::GetLane(hn::SumOfLanes(F32(), v));
}

template <class T>
struct Tiles {
    static constexpr std::int64_t kBlocks = kTileValues / T::kValues, kParts = kTileValues / T::kPart;
    static std::int64_t Count(std::int64_t columns) { return (columns + kTileValues - 1) / kTileValues; }
};

/// Hands out the decoded tiles of rows that lie together, one ahead.
template <class T>
class TileReader {
public:
    TileReader(const std::uint8_t* begin, std::int64_t rows, std::int64_t columns)
        : at_(begin), blocks_(columns / T::kValues), rows_left_(rows), row_left_(blocks_) {
        DecodeNext();
    }

    /// The next tile, valid until the next call. Not to be called more often than there are tiles.
    HWY_INLINE const Tile& Next() {
        const Tile& tile = tiles_[ready_];
        ready_ ^= 1;
        DecodeNext();
        return tile;
    }

private:
    HWY_INLINE void DecodeNext() {
        if (rows_left_ == 0) return;
        Tile& tile = tiles_[ready_];
        int count = 1;
        if constexpr (Tiles<T>::kBlocks > 1) {
            count = static_cast<int>(HWY_MIN(Tiles<T>::kBlocks, row_left_));
            if (T::kOffsets && count < Tiles<T>::kBlocks) hwy::ZeroBytes<sizeof tile.offsets>(tile.offsets);
        }
        for (std::int64_t i = 0; i < count * T::kBytes; i += kLineBytes) hwy::Prefetch(at_ + kAheadBytes + i);
        T::Scales(at_, count, tile);
        for (int i = 0; i < count; ++i) T::Values(at_ + i * T::kBytes, tile.values + i * T::kValues);
        at_ += count * T::kBytes;
        row_left_ -= count;
        if (row_left_ == 0) {
            row_left_ = blocks_;
            --rows_left_;
        }
    }

    Tile tiles_[2];
    int ready_ = 0;
    const std::uint8_t* at_;
    const std::int64_t blocks_;
    std::int64_t rows_left_, row_left_;
};

/// Sums of a row and some tokens, of even and odd parts apart: half as long a chain of additions.
template <std::size_t kTokens>
struct RowSums {
    V parts[2][kTokens];
    hn::Vec<ScaleFloats> offsets[kTokens];
};

/// sums += scale * (values x) of one part.
template <class T, int kParity, std::size_t... K>
HWY_INLINE void AddPart(std::index_sequence<K...>, const std::int8_t* values, float scale, const float* x,
                        std::int64_t stride, RowSums<sizeof...(K)>& sums) {
    const F32 d;
    const hn::Rebind<std::int32_t, F32> di;
    const hn::Rebind<std::int8_t, F32> d8;
    const auto value = [=](int i) HWY_ATTR {
        return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(d8, values + i)));
    };
    const V first = value(0);
    V part[] = {hn::Mul(first, hn::LoadU(d, x + static_cast<std::int64_t>(K) * stride))...};
    HWY_UNROLL(8)
    for (int i = Lanes(d); i < T::kPart; i += Lanes(d)) {
        const V next = value(i);
        ((part[K] = hn::MulAdd(next, hn::LoadU(d, x + static_cast<std::int64_t>(K) * stride + i), part[K])), ...);
    }
    const V factor = hn::Set(d, scale);
    ((sums.parts[kParity][K] = hn::MulAdd(part[K], factor, sums.parts[kParity][K])), ...);
}

template <class T, std::size_t... K>
HWY_INLINE void AddTile(std::index_sequence<K...> tokens, const Tile& tile, int parts, const float* x,
                        std::int64_t stride, const float* x_sums, std::int64_t sums_stride,
                        RowSums<sizeof...(K)>& sums) {
    int part = 0;
    for (; part + 2 <= parts; part += 2) {
        const std::int64_t at = part * T::kPart;
        AddPart<T, 0>(tokens, tile.values + at, tile.scales[part], x + at, stride, sums);
        AddPart<T, 1>(tokens, tile.values + at + T::kPart, tile.scales[part + 1], x + at + T::kPart, stride, sums);
    }
    if (part < parts) {
        const std::int64_t at = part * T::kPart;
        AddPart<T, 0>(tokens, tile.values + at, tile.scales[part], x + at, stride, sums);
    }
    if constexpr (T::kOffsets) {
        const ScaleFloats d;
        for (int i = 0; i < Tiles<T>::kParts; i += Lanes(d)) {
            const auto offset = hn::Load(d, tile.offsets + i);
            ((sums.offsets[K] = hn::MulAdd(
                  offset, hn::LoadU(d, x_sums + static_cast<std::int64_t>(K) * sums_stride + i), sums.offsets[K])),
             ...);
        }
    }
}

/// Rows of tokens first .. first + K.
template <class T, std::size_t... K>
void BlockRows(std::index_sequence<K...> tokens, const PackedTask& task, std::int64_t first) {
    const F32 d;
    const ScaleFloats ds;
    const PackedProduct& product = *task.product;
    const std::int64_t tiles = Tiles<T>::Count(product.columns), sums_stride = tiles * Tiles<T>::kParts;
    const float* x = product.x + first * product.x_stride;
    const float* x_sums = T::kOffsets ? task.sums + first * sums_stride : nullptr;
    TileReader<T> reader(static_cast<const std::uint8_t*>(product.blocks) + task.row_begin * task.row_bytes,
                         task.row_end - task.row_begin, product.columns);
    const int last_parts = static_cast<int>((product.columns - (tiles - 1) * kTileValues) / T::kPart);
    for (std::int64_t row = task.row_begin; row < task.row_end; ++row) {
        RowSums<sizeof...(K)> sums;
        ((sums.parts[0][K] = sums.parts[1][K] = hn::Zero(d), sums.offsets[K] = hn::Zero(ds)), ...);
        for (std::int64_t tile = 0; tile < tiles; ++tile) {
            const int parts = tile + 1 < tiles ? static_cast<int>(Tiles<T>::kParts) : last_parts;
            AddTile<T>(tokens, reader.Next(), parts, x + tile * kTileValues, product.x_stride,
                       x_sums + (T::kOffsets ? tile * Tiles<T>::kParts : 0), sums_stride, sums);
        }
        const auto write = [&](std::int64_t token, V even, V odd, hn::Vec<ScaleFloats> offsets) HWY_ATTR {
            float result = Sum(hn::Add(even, odd));
            if constexpr (T::kOffsets) result -= hn::GetLane(hn::SumOfLanes(ds, offsets));
            if (product.bias != nullptr) result += product.bias[row];
            product.y[(first + token) * product.y_stride + row] = result;
        };
        (write(static_cast<std::int64_t>(K), sums.parts[0][K], sums.parts[1][K], sums.offsets[K]), ...);
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
    if ((tokens - first) / 2 == 1) {
        body(std::make_index_sequence<2>(), first);
        first += 2;
    }
    if (first < tokens) body(std::make_index_sequence<1>(), first);
}

/// body(decoder) for the decoder of a type; false for numbers of 16 bits.
template <class Body>
HWY_INLINE bool WithDecoder(PackedType type, const Body& body) {
    switch (type) {
        case PackedType::f16:
        case PackedType::bf16: return false;
        case PackedType::q4_0: body(Q4_0()); break;
        case PackedType::q4_1: body(Q4_1()); break;
        case PackedType::q5_0: body(Q5_0()); break;
        case PackedType::q5_1: body(Q5_1()); break;
        case PackedType::q8_0: body(Q8_0()); break;
        case PackedType::q2_k: body(Q2K()); break;
        case PackedType::q3_k: body(Q3K()); break;
        case PackedType::q4_k: body(Q4K()); break;
        case PackedType::q5_k: body(Q5K()); break;
        case PackedType::q6_k: body(Q6K()); break;
        case PackedType::iq4_nl: body(Iq4Nl()); break;
        case PackedType::iq4_xs: body(Iq4Xs()); break;
        case PackedType::tq1_0: body(Tq1_0()); break;
        case PackedType::tq2_0: body(Tq2_0()); break;
        case PackedType::mxfp4: body(Mxfp4()); break;
        case PackedType::nvfp4: body(Nvfp4()); break;
    }
    return true;
}

std::int64_t PackedSumsSize(const PackedProduct& product) {
    std::int64_t size = 0;
    WithDecoder(product.type, [&](auto decoder) {
        using T = decltype(decoder);
        if (T::kOffsets) size = product.tokens * Tiles<T>::Count(product.columns) * Tiles<T>::kParts;
    });
    return size;
}

template <class T>
void PartSums(const PackedProduct& product, float* sums) {
    const F32 d;
    const std::int64_t parts = Tiles<T>::Count(product.columns) * Tiles<T>::kParts;
    for (std::int64_t token = 0; token < product.tokens; ++token, sums += parts) {
        const float* x = product.x + token * product.x_stride;
        for (std::int64_t part = 0; part < parts; ++part) {
            V sum = hn::Zero(d);
            if ((part + 1) * T::kPart <= product.columns) {
                for (int i = 0; i < T::kPart; i += Lanes(d))
                    sum = hn::Add(sum, hn::LoadU(d, x + part * T::kPart + i));
            }
            sums[part] = Sum(sum);
        }
    }
}

void PackedSums(const PackedProduct& product, float* sums) {
    WithDecoder(product.type, [&](auto decoder) HWY_ATTR { PartSums<decltype(decoder)>(product, sums); });
}

void PackedRows(const PackedTask& task) {
    const PackedProduct& product = *task.product;
    const bool is_blocks = WithDecoder(product.type, [&](auto decoder) HWY_ATTR {
        ForTokens(product.tokens, [&](auto tokens, std::int64_t first) HWY_ATTR {
            BlockRows<decltype(decoder)>(tokens, task, first);
        });
    });
    if (is_blocks) return;
    ForTokens(product.tokens, [&](auto tokens, std::int64_t first) HWY_ATTR {
        if (product.type == PackedType::f16)
            NumberRows<Halves>(tokens, task, first);
        else
            NumberRows<Brains>(tokens, task, first);
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
