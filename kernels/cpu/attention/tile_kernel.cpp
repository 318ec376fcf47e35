// SPDX-License-Identifier: GPL-3.0-or-later
// Keys are packed into panels of two vectors [dk][columns]; four queries at a time meet a panel in eight accumulators;
// their rows then get biases, cap, normaliser and mask while they lie in the first-level cache.
#include "kernels/cpu/attention/tile_kernel.h"

#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/cpu/attention/sequence.h"
#include "kernels/normaliser.h"
#include "kernels/score_pairs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/tile_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway asks.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "kernels/cpu/attention/normalisers-inl.h"

#ifndef HEADSCOPE_TILE_KERNEL_ONCE
#define HEADSCOPE_TILE_KERNEL_ONCE
namespace headscope::kernels::tile {

constexpr std::int64_t kRows = 4;

using Buffer = hwy::AlignedFreeUniquePtr<float[]>;

inline Buffer buffer(std::int64_t size) {
    return hwy::AllocateAligned<float>(static_cast<std::size_t>(size));
}

/// Row i of head h of a view as float32.
inline void read_row(const TensorView& view, std::int64_t b, std::int64_t h, std::int64_t i, float* out) {
    const std::int64_t start = b * view.batch_stride + h * view.head_stride + i * view.row_stride;
    if (view.type == ElementType::float32) {
        std::memcpy(out, static_cast<const float*>(view.data) + start,
                    static_cast<std::size_t>(view.size) * sizeof(float));
        return;
    }
    const std::uint16_t* half = static_cast<const std::uint16_t*>(view.data) + start;
    for (std::int64_t c = 0; c < view.size; ++c) {
        out[c] = std::bit_cast<float>(static_cast<std::uint32_t>(half[c]) << 16);
    }
}

/// Inputs shared by all rows of a tile.
struct Context {
    const TileJob& job;
    const ScoreRule& rule = *job.input->rule;
    SequenceBounds bounds = sequence_bounds(rule, job.b, job.input->query.length, job.input->key.length);
    std::int64_t columns = job.k_end - job.k_begin;
    std::int64_t dk = job.input->query.size;

    /// Visible columns of the row, relative to the tile's first.
    KeyRange visible(std::int64_t i) const {
        if (i >= job.q_end) return {};
        const KeyRange keys = key_range(rule, bounds, i);
        const std::int64_t begin = std::clamp<std::int64_t>(keys.begin - job.k_begin, 0, columns);
        return {begin, std::clamp<std::int64_t>(keys.end - job.k_begin, begin, columns)};
    }

    /// slope and distance bias of the columns of `range`.
    void additive(std::int64_t i, KeyRange range, float* out) const {
        const float slope = rule.slopes.empty() ? 0.0F : rule.slopes[static_cast<std::size_t>(job.h)];
        for (std::int64_t j = range.begin; j < range.end; ++j) {
            const std::int64_t relative = job.k_begin + j - i - rule.query_offset;
            out[j] = slope * static_cast<float>(relative) + distance_bias(rule, job.h, relative);
        }
    }

    /// Columns before this are farther from row i than ScoreRule::far_distance.
    std::int64_t first_near(std::int64_t i) const {
        if (rule.far_distance < 0) return 0;
        return std::clamp<std::int64_t>(i + rule.query_offset - rule.far_distance - job.k_begin, 0, columns);
    }

    /// Writes `masked` over every column that row i may not see.
    void mask(std::int64_t i, KeyRange range, float masked, float* row) const {
        std::fill(row, row + range.begin, masked);
        std::fill(row + range.end, row + columns, masked);
        if (rule.window_left >= 0) {  // what lies between the first keys and the window
            const std::int64_t window = window_begin(rule, i + rule.query_offset) - job.k_begin;
            const std::int64_t first = std::max(range.begin, rule.first_keys - job.k_begin);
            if (first < std::min(range.end, window)) std::fill(row + first, row + std::min(range.end, window), masked);
        }
        const std::int64_t size = rule.blocks.block_size;
        if (size == 0) return;
        for (std::int64_t j = range.begin; j < range.end;) {
            const std::int64_t block = (job.k_begin + j) / size;
            const std::int64_t next = std::min(range.end, (block + 1) * size - job.k_begin);
            if (!block_visible(rule, job.b, job.h, job.input->query.heads, i, block))
                std::fill(row + j, row + next, masked);
            j = next;
        }
    }
};

/// Constants of a Taylor row: A = zeroth + first s + second t2.
struct TaylorConstants {
    float zeroth = 0.0F, first = 0.0F, second = 0.0F;
};

/// Taylor constants of a tile's rows, in rising order. With a denominator per order, files lack that of the first: it
/// is q_i times the sum of the keys that row i sees, found for all rows in one walk over the keys.
class TaylorRows {
public:
    explicit TaylorRows(const Context& context)
        : context_(context),
          sum_(traits_of(context.rule.normaliser).per_order ? static_cast<std::size_t>(context.dk) : 0),
          row_(sum_.size()) {}

    TaylorConstants constants(std::int64_t i) {
        const float second = 1.0F / context_.job.row_constant[i];
        if (sum_.empty()) return {second, second, second};
        const TileJob& job = context_.job;
        const KeyRange keys = key_range(context_.rule, context_.bounds, i);
        const std::int64_t group = job.h / (job.input->query.heads / job.input->key.heads);
        for (seen_ = std::max(seen_, keys.begin); seen_ < keys.end; ++seen_) {
            read_row(job.input->key, job.b, group, seen_, row_.data());
            for (std::size_t c = 0; c < sum_.size(); ++c) sum_[c] += double{row_[c]};
        }
        read_row(job.input->query, job.b, job.h, i, row_.data());
        double dot = 0.0;
        for (std::size_t c = 0; c < sum_.size(); ++c) dot += double{row_[c]} * sum_[c];
        const double number = static_cast<double>(keys.end - keys.begin);
        return {static_cast<float>(1.0 / number), static_cast<float>(1.0 / (dot * context_.rule.scale)), second};
    }

private:
    const Context& context_;
    std::vector<double> sum_;
    std::vector<float> row_;
    std::int64_t seen_ = 0;
};

}  // namespace headscope::kernels::tile
#endif

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using tile::kRows;

/// Panels of 2 * Lanes columns, each [dk][2 * Lanes]; columns past the end are zero.
void pack_keys(const TileJob& job, std::int64_t panel_width, float* panels, float* row) {
    const TensorView& key = job.input->key;
    const std::int64_t dk = key.size, group = job.h / (job.input->query.heads / key.heads);
    const std::int64_t columns = job.k_end - job.k_begin;
    const std::int64_t padded = (columns + panel_width - 1) / panel_width * panel_width;
    for (std::int64_t j = 0; j < padded; ++j) {
        if (j < columns)
            tile::read_row(key, job.b, group, job.k_begin + j, row);
        else
            std::fill(row, row + dk, 0.0F);
        float* to = panels + j / panel_width * panel_width * dk + j % panel_width;
        for (std::int64_t c = 0; c < dk; ++c) to[c * panel_width] = row[c];
    }
}

/// Scaled dot products of four queries (interleaved [dk][4]) with one panel.
HWY_INLINE void dots(const float* HWY_RESTRICT q, const float* HWY_RESTRICT panel, std::int64_t dk, float scale,
                     float* HWY_RESTRICT out, std::int64_t stride) {
    const D d;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    auto a0 = hn::Zero(d), a1 = a0, b0 = a0, b1 = a0, c0 = a0, c1 = a0, d0 = a0, d1 = a0;
    for (std::int64_t c = 0; c < dk; ++c, q += kRows, panel += 2 * lanes) {
        const auto k0 = hn::Load(d, panel), k1 = hn::Load(d, panel + lanes);
        const auto q0 = hn::Set(d, q[0]), q1 = hn::Set(d, q[1]), q2 = hn::Set(d, q[2]), q3 = hn::Set(d, q[3]);
        a0 = hn::MulAdd(q0, k0, a0);
        a1 = hn::MulAdd(q0, k1, a1);
        b0 = hn::MulAdd(q1, k0, b0);
        b1 = hn::MulAdd(q1, k1, b1);
        c0 = hn::MulAdd(q2, k0, c0);
        c1 = hn::MulAdd(q2, k1, c1);
        d0 = hn::MulAdd(q3, k0, d0);
        d1 = hn::MulAdd(q3, k1, d1);
    }
    const auto s = hn::Set(d, scale);
    hn::Store(hn::Mul(a0, s), d, out);
    hn::Store(hn::Mul(a1, s), d, out + lanes);
    hn::Store(hn::Mul(b0, s), d, out + stride);
    hn::Store(hn::Mul(b1, s), d, out + stride + lanes);
    hn::Store(hn::Mul(c0, s), d, out + 2 * stride);
    hn::Store(hn::Mul(c1, s), d, out + 2 * stride + lanes);
    hn::Store(hn::Mul(d0, s), d, out + 3 * stride);
    hn::Store(hn::Mul(d1, s), d, out + 3 * stride + lanes);
}

template <typename Step>
HWY_INLINE void each_vector(KeyRange range, float* row, const Step& step) {
    const D d;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (std::int64_t j = range.begin / lanes * lanes; j < range.end; j += lanes) {
        hn::Store(step(hn::Load(d, row + j), j), d, row + j);
    }
}

/// The scores of one row that become its weights.
struct ScoredRow {
    const tile::Context& context;
    std::int64_t i;
    KeyRange range;
    const float* squares;  ///< the second order's own scores, or null
    tile::TaylorRows& taylor;
    float* row;
    Normaliser normaliser = context.rule.normaliser;
};

template <class N>
struct WeighRow {
    static void Run(const ScoredRow& scored) {
        const D d;
        if constexpr (N::kTraits.terms == Terms::taylor) {
            const tile::TaylorConstants constants = scored.taylor.constants(scored.i);
            const auto zeroth = hn::Set(d, constants.zeroth), first = hn::Set(d, constants.first);
            const auto second = hn::Set(d, constants.second), half = hn::Set(d, 0.5F);
            each_vector(scored.range, scored.row, [&](auto s, std::int64_t j) {
                const auto order = N::kTraits.diagonal ? hn::Load(d, scored.squares + j) : hn::Mul(hn::Mul(half, s), s);
                return N::OfConstants(d, s, order, zeroth, first, second);
            });
        } else {
            const tile::Context& context = scored.context;
            const auto constant = hn::Set(d, context.job.row_constant[scored.i]);
            const auto offset = hn::Set(d, offset_of(context.rule, context.bounds, context.job.h, scored.i));
            each_vector(scored.range, scored.row,
                        [&](auto s, std::int64_t) { return N::OfConstant(d, s, constant, offset); });
        }
    }
};

/// Turns the dot products of row i into scores or weights, in place. `squares`, `taylor`: for Taylor weights only.
void finish_row(const tile::Context& context, std::int64_t i, KeyRange range, float* additive, const float* squares,
                tile::TaylorRows& taylor, float* row) {
    const D d;
    const ScoreRule& rule = context.rule;
    if (!rule.slopes.empty() || rule.bias_length > 0) {
        context.additive(i, range, additive);
        each_vector(range, row, [&](auto s, std::int64_t j) { return hn::Add(s, hn::Load(d, additive + j)); });
    }
    if (rule.soft_cap > 0.0) {
        const auto cap = hn::Set(d, static_cast<float>(rule.soft_cap));
        const auto inverse = hn::Set(d, static_cast<float>(1.0 / rule.soft_cap));
        each_vector(range, row,
                    [&](auto s, std::int64_t) { return hn::Mul(cap, hn::CallTanh(d, hn::Mul(s, inverse))); });
    }
    if (context.job.row_constant == nullptr) {
        context.mask(i, range, -std::numeric_limits<float>::infinity(), row);
        return;
    }
    cpu::HWY_NAMESPACE::RunNormaliser<WeighRow>(ScoredRow{context, i, range, squares, taylor, row});
    context.mask(i, range, 0.0F, row);
}

void compute_tile_on(const TileJob& job) {
    const tile::Context context{job};
    const D d;
    const std::int64_t width = 2 * static_cast<std::int64_t>(hn::Lanes(d)), dk = context.dk;
    const std::int64_t columns = context.columns, padded = (columns + width - 1) / width * width;
    const auto panels = tile::buffer(padded * dk);
    const auto queries = tile::buffer(kRows * dk), one = tile::buffer(dk);
    const auto rows = tile::buffer((kRows + 1) * padded);
    float* additive = rows.get() + kRows * padded;
    std::fill(additive, additive + padded, 0.0F);
    pack_keys(job, width, panels.get(), one.get());
    // The second order's own scores are dot products of squares.
    const bool diagonal = job.row_constant != nullptr && traits_of(context.rule.normaliser).diagonal;
    const auto panels_of_squares = tile::buffer(diagonal ? padded * dk : 1);
    const auto squared = tile::buffer(diagonal ? kRows * dk : 1), rows_of_squares = tile::buffer(kRows * padded);
    for (std::int64_t x = 0; diagonal && x < padded * dk; ++x) panels_of_squares[x] = panels[x] * panels[x];
    const auto far = tile::buffer(kRows * width);
    tile::TaylorRows taylor(context);
    for (std::int64_t i = job.q_begin; i < job.q_end; i += kRows) {
        KeyRange visible[kRows], all{columns, 0};
        for (std::int64_t r = 0; r < kRows; ++r) {
            visible[r] = context.visible(i + r);
            if (visible[r].begin < visible[r].end) {
                all = {std::min(all.begin, visible[r].begin), std::max(all.end, visible[r].end)};
            }
            if (i + r < job.q_end) tile::read_row(job.input->query, job.b, job.h, i + r, one.get());
            for (std::int64_t c = 0; c < dk; ++c)
                queries[static_cast<std::size_t>(kRows * c + r)] = one[static_cast<std::size_t>(c)];
        }
        const double scale = context.rule.scale;
        for (std::int64_t x = 0; diagonal && x < kRows * dk; ++x) squared[x] = queries[x] * queries[x];
        for (std::int64_t j = all.begin / width * width; j < all.end; j += width) {
            dots(queries.get(), panels.get() + j * dk, dk, static_cast<float>(scale), rows.get() + j, padded);
            if (diagonal)
                dots(squared.get(), panels_of_squares.get() + j * dk, dk, static_cast<float>(0.5 * scale * scale),
                     rows_of_squares.get() + j, padded);
            if (j >= context.first_near(i + kRows - 1)) continue;
            const auto own = static_cast<std::size_t>(kRows * (dk - 1));
            dots(queries.get(), panels.get() + j * dk, context.rule.near_begin, static_cast<float>(scale), far.get(),
                 width);
            for (std::int64_t r = 0; r < kRows; ++r) {
                const std::int64_t count = std::min(width, context.first_near(i + r) - j);
                const float last = queries[own + static_cast<std::size_t>(r)] * static_cast<float>(scale);
                for (std::int64_t x = 0; x < count; ++x) rows[r * padded + j + x] = far[r * width + x] + last;
            }
        }
        for (std::int64_t r = 0; r < kRows && i + r < job.q_end; ++r) {
            float* row = rows.get() + r * padded;
            finish_row(context, i + r, visible[r], additive, diagonal ? rows_of_squares.get() + r * padded : nullptr,
                       taylor, row);
            std::memcpy(job.out + (i + r - job.q_begin) * columns, row,
                        static_cast<std::size_t>(columns) * sizeof(float));
        }
    }
}

void add_and_raise_on(const float* row, std::int64_t size, float* sum, float* maximum) {
    const D d;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t n = 0;
    for (; n + lanes <= size; n += lanes) {
        const auto value = hn::LoadU(d, row + n);
        hn::StoreU(hn::Add(hn::LoadU(d, sum + n), value), d, sum + n);
        hn::StoreU(hn::Max(hn::LoadU(d, maximum + n), value), d, maximum + n);
    }
    for (; n < size; ++n) {
        sum[n] += row[n];
        maximum[n] = std::max(maximum[n], row[n]);
    }
}

}  // namespace
}  // namespace headscope::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels {

HWY_EXPORT(compute_tile_on);
HWY_EXPORT(add_and_raise_on);

void compute_tile(const TileJob& job) {
    HWY_DYNAMIC_DISPATCH(compute_tile_on)(job);
}

void add_and_raise(const float* row, std::int64_t size, float* sum, float* maximum) {
    HWY_DYNAMIC_DISPATCH(add_and_raise_on)(row, size, sum, maximum);
}

}  // namespace headscope::kernels
#endif
