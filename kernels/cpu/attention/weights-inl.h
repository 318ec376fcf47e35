// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. From a tile of scores to a tile of weights, in place, with the sums that go along.
#if defined(HEADSCOPE_KERNELS_CPU_WEIGHTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_WEIGHTS_INL_H
#undef HEADSCOPE_KERNELS_CPU_WEIGHTS_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_WEIGHTS_INL_H
#endif

#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/attention/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

/// Rows [begin, end) of a tile whose column sums are kept together, under number `part` of the block.
struct RowPart {
    int begin, end, part;
};

/// Rows [0, rows) and columns [begin, end) of a tile of scores [kRows][kTileKeys] that become weights.
struct WeighedTile {
    float* scores;
    int rows;
    std::int64_t begin, end;
    const float *shift, *factor, *offset;                      ///< the rows' constants; offset as RowAt has it
    float *mean = nullptr, *squares = nullptr;                 ///< across heads so far, [columns / lanes][kRows][lanes]
    std::int64_t head = 0;                                     ///< how many heads are in them
    float *part_sums = nullptr, *part_maxima = nullptr;        ///< [parts of the block][kTileKeys]
    const RowPart *part_begin = nullptr, *part_end = nullptr;  ///< those of this tile's rows
    float distance = 0.0f;                                     ///< position of row 0 less the tile's first key
};

template <class N>
HWY_INLINE void WeighPlain(const WeighedTile& tile) {
    const F32 d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (int r = 0; r < tile.rows; ++r) {
        const RowVectors constants = RowAt<N>(d, tile.shift, tile.factor, tile.offset, r);
        float* HWY_RESTRICT row = tile.scores + r * kTileKeys;
        for (std::int64_t c = tile.begin; c < tile.end; c += lanes) {
            hn::Store(N::Weight(d, hn::Load(d, row + c), constants), d, row + c);
        }
    }
}

/// kSpread 0: one head alone; 1: the first of several, 2: a later one (Welford's update of mean and squared
/// deviations across heads). Returns the sum of weight times distance (i' - j).
///
/// Distances are taken from the row after a part's last: with S the column's sum over n rows and P the total of its
/// running sums (n p_0 + ... + 1 p_(n-1)), sum_r (n - r) p_r = P. One more addition a pair, and nothing cancels.
template <class N, int kSpread>
HWY_INLINE double WeighAndMeasure(const WeighedTile& tile) {
    const F32 d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const V reciprocal = hn::Set(d, 1.0f / static_cast<float>(tile.head + 1));
    V moment = hn::Zero(d);
    for (std::int64_t c = tile.begin; c < tile.end; c += lanes) {
        float* HWY_RESTRICT mean = tile.mean + c * kRows;
        float* HWY_RESTRICT squares = tile.squares + c * kRows;
        const V column_distance = hn::Sub(hn::Set(d, tile.distance - static_cast<float>(c)), hn::Iota(d, 0.0f));
        for (const RowPart* part = tile.part_begin; part != tile.part_end; ++part) {
            float* sums = tile.part_sums + part->part * kTileKeys + c;
            float* maxima = tile.part_maxima + part->part * kTileKeys + c;
            V sum = hn::Zero(d), running = hn::Zero(d), maximum = hn::Load(d, maxima);
            for (int r = part->begin; r < part->end; ++r) {
                float* at = tile.scores + r * kTileKeys + c;
                const V p = N::Weight(d, hn::Load(d, at), RowAt<N>(d, tile.shift, tile.factor, tile.offset, r));
                hn::Store(p, d, at);
                sum = hn::Add(sum, p);
                running = hn::Add(running, sum);
                maximum = hn::Max(maximum, p);
                if constexpr (kSpread == 1) {
                    hn::Store(p, d, mean + r * lanes);
                    hn::Store(hn::Zero(d), d, squares + r * lanes);
                } else if constexpr (kSpread == 2) {
                    const V old_mean = hn::Load(d, mean + r * lanes);
                    const V delta = hn::Sub(p, old_mean);
                    const V new_mean = hn::MulAdd(delta, reciprocal, old_mean);
                    hn::Store(new_mean, d, mean + r * lanes);
                    hn::Store(hn::MulAdd(delta, hn::Sub(p, new_mean), hn::Load(d, squares + r * lanes)), d,
                              squares + r * lanes);
                }
            }
            hn::Store(hn::Add(hn::Load(d, sums), sum), d, sums);
            hn::Store(maximum, d, maxima);
            const V end = hn::Add(column_distance, hn::Set(d, static_cast<float>(part->end)));
            moment = hn::Add(moment, hn::Sub(hn::Mul(sum, end), running));
        }
    }
    return double{Sum(d, moment)};
}

/// Sum over the tile of the standard deviation across heads (divisor heads - 1).
HWY_INLINE double SumOfDeviations(const float* HWY_RESTRICT squares, int rows, std::int64_t begin, std::int64_t end,
                                  std::int64_t heads) {
    const F32 d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    if (heads < 2) return 0.0;
    const V divisor = hn::Set(d, 1.0f / static_cast<float>(heads - 1));
    V sum = hn::Zero(d);
    for (std::int64_t c = begin; c < end; c += lanes) {
        for (int r = 0; r < rows; ++r) {
            sum = hn::Add(sum, hn::Sqrt(hn::Mul(hn::Load(d, squares + c * kRows + r * lanes), divisor)));
        }
    }
    return double{Sum(d, sum)};
}

HWY_INLINE void MaskTile(float* HWY_RESTRICT scores, std::int64_t begin, std::int64_t end) {
    const F32 d;
    for (int r = 0; r < kRows; ++r) {
        for (std::int64_t c = begin; c < end; c += static_cast<std::int64_t>(hn::Lanes(d))) {
            hn::Store(hn::Set(d, kMasked), d, scores + r * kTileKeys + c);
        }
    }
}

/// True if the smallest weight of a row counts as zero. False for a row that sees no key (minimum +inf).
template <class N>
HWY_INLINE bool HasZeros(const RowConstants& rows, const float* offsets, std::int64_t at) {
    const float minimum = rows.minimum[at];
    if (!(minimum <= -kMasked) || !N::MayVanish(minimum, rows.shift[at], rows.factor[at])) return false;
    const F32 d;
    const RowVectors row = RowAt<N>(d, rows.shift, rows.factor, offsets, at);
    return hn::GetLane(N::Weight(d, hn::Set(d, minimum), row)) < kSmallestNormal;
}

HWY_INLINE std::int64_t CountNormal(const float* HWY_RESTRICT weights, std::int64_t begin, std::int64_t end) {
    const F32 d;
    std::size_t count = 0;
    for (std::int64_t c = begin; c < end; c += static_cast<std::int64_t>(hn::Lanes(d))) {
        count += hn::CountTrue(d, hn::Ge(hn::Load(d, weights + c), hn::Set(d, kSmallestNormal)));
    }
    return static_cast<std::int64_t>(count);
}

HWY_INLINE bool HasNegative(const float* HWY_RESTRICT weights, std::int64_t begin, std::int64_t end) {
    const F32 d;
    for (std::int64_t c = begin; c < end; c += static_cast<std::int64_t>(hn::Lanes(d))) {
        if (!hn::AllFalse(d, hn::Lt(hn::Load(d, weights + c), hn::Zero(d)))) return true;
    }
    return false;
}

HWY_INLINE float SumRange(const float* weights, std::int64_t begin, std::int64_t end) {
    const F32 d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    V sum = hn::Zero(d);
    std::int64_t c = begin;
    for (; c + lanes <= end; c += lanes) sum = hn::Add(sum, hn::LoadU(d, weights + c));
    float total = Sum(d, sum);
    for (; c < end; ++c) total += weights[c];
    return total;
}

/// A row's mass, sum of squares, entropy (nats) and sum of weight times distance, from the weights themselves.
/// `distance`: the row's position less the tile's first key.
HWY_INLINE RowSums SumRow(const float* HWY_RESTRICT weights, std::int64_t begin, std::int64_t end, float distance) {
    const F32 d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    V mass = hn::Zero(d), squares = hn::Zero(d), entropy = hn::Zero(d), moment = hn::Zero(d);
    for (std::int64_t c = begin; c < end; c += lanes) {
        const V p = hn::Load(d, weights + c);
        mass = hn::Add(mass, p);
        squares = hn::MulAdd(p, p, squares);
        const V log = hn::Log(d, hn::Max(hn::Set(d, kSmallestNormal), p));
        entropy = hn::NegMulAdd(p, log, entropy);
        const V steps = hn::Sub(hn::Set(d, distance - static_cast<float>(c)), hn::Iota(d, 0.0f));
        moment = hn::MulAdd(p, steps, moment);
    }
    return {double{Sum(d, mass)}, double{Sum(d, squares)}, double{Sum(d, entropy)}, double{Sum(d, moment)}};
}

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
