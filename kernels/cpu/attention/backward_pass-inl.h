// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. The backward pass of attention for any normaliser whose weights are a function of the
// score and what the row has: dS = slope (dA - mean), slope and mean as RowMean says (kernels/normaliser.h).
//
// Tiles of kBackwardRows queries by kBackwardKeys keys of one head: S and dA (two products over the sizes of keys and
// values), A and dS by element, then dQ += dS K, dV += A^T dO, dK += dS^T Q. With dropout, dV takes the weights that
// stay, scaled, and dA is that of those; sum A dA is O . dO as before.
#if defined(HEADSCOPE_KERNELS_CPU_BACKWARD_PASS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_BACKWARD_PASS_INL_H
#undef HEADSCOPE_KERNELS_CPU_BACKWARD_PASS_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_BACKWARD_PASS_INL_H
#endif

#include "kernels/cpu/attention/dropout-inl.h"
#include "kernels/cpu/attention/scores-inl.h"
#include "kernels/cpu/elements-inl.h"
#include "kernels/normaliser.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

/// Rows [first, first + count) of a head as float32 [count][stride]; rows outside [valid_begin, valid_end) and columns
/// beyond the size are 0, so that whatever padding holds has no part in any sum.
HWY_INLINE void CopyRows(const HeadMatrix& m, std::int64_t head, std::int64_t first, std::int64_t count,
                         std::int64_t valid_begin, std::int64_t valid_end, std::int64_t size, float* HWY_RESTRICT out,
                         std::int64_t stride) {
    const F32 d;
    for (std::int64_t r = 0; r < count; ++r, out += stride) {
        const std::int64_t i = first + r, at = head * m.head_stride + i * m.row_stride;
        for (std::int64_t c = size; c < stride; ++c) out[c] = 0.0f;
        if (i < valid_begin || i >= valid_end) {
            for (std::int64_t c = 0; c < size; ++c) out[c] = 0.0f;
        } else if (m.type == ElementType::float32) {
            const float* from = static_cast<const float*>(m.data) + at;
            ForVectors(d, size, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
                store(load(from + c), out + c);
            });
        } else {
            const std::uint16_t* from = static_cast<const std::uint16_t*>(m.data) + at;
            ForVectors(d, size, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
                store(load(from + c), out + c);
            });
        }
    }
}

/// Groups of `width` rows [rows][stride] side by side: out[group][c][row]. rows is a multiple of width.
HWY_INLINE void TransposeGroups(const float* HWY_RESTRICT rows, std::int64_t count, std::int64_t stride,
                                std::int64_t size, std::int64_t width, float factor, float* HWY_RESTRICT out) {
    for (std::int64_t group = 0; group < count; group += width) {
        for (std::int64_t r = 0; r < width; ++r) {
            const float* HWY_RESTRICT from = rows + (group + r) * stride;
            float* HWY_RESTRICT to = out + group * size + r;
            for (std::int64_t c = 0; c < size; ++c) to[c * width] = factor * from[c];
        }
    }
}

/// c [kRows][c_stride] += a b, a's elements at a[r * kARow + k * kAStep], b [steps][stride], for all `stride` columns.
template <int kARow, int kAStep>
HWY_INLINE void AccumulateProduct(const float* a, const float* b, std::int64_t stride, std::int64_t steps, float* c) {
    const std::int64_t width = PanelWidth(), lanes = width / 2;
    std::int64_t x = 0;
    for (; x + width <= stride; x += width)
        MultiplyTwo<kARow, kAStep>(RowIndices(), a, b + x, stride, steps, true, c + x, stride);
    for (; x < stride; x += lanes)
        MultiplyOne<kARow, kAStep>(RowIndices(), a, b + x, stride, steps, true, c + x, stride);
}

HWY_INLINE void SetZero(float* to, std::int64_t count) {
    for (std::int64_t x = 0; x < count; ++x) to[x] = 0.0f;
}

HWY_INLINE void WriteRows(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t size, float scale,
                          const HeadTarget& target, std::int64_t head, std::int64_t first) {
    const F32 d;
    const V factor = hn::Set(d, scale);
    for (std::int64_t r = 0; r < rows; ++r, from += stride) {
        const std::int64_t at = head * target.head_stride + (first + r) * target.row_stride;
        ForVectors(d, size, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
            const V x = hn::Mul(load(from + c), factor);
            if (target.type == ElementType::float32)
                store(x, static_cast<float*>(target.data) + at + c);
            else
                store(x, static_cast<std::uint16_t*>(target.data) + at + c);
        });
    }
}

template <class N>
class BackwardPass {
public:
    explicit BackwardPass(const BackwardTask& task) : task_(task), s_(*task.sequence) {
        keys_ = (task.key_last - task.key_first + kBackwardKeys - 1) / kBackwardKeys * kBackwardKeys;
        queries_ = (s_.queries + kRows - 1) / kRows * kRows;
        key_stride_ = pad_to_line(s_.key_size);
        value_stride_ = pad_to_line(s_.value_size);
        float* at = task.scratch;
        const auto take = [&at](std::int64_t floats) { return std::exchange(at, at + pad_to_line(floats)); };
        key_panels_ = take(keys_ * s_.key_size);
        value_panels_ = take(keys_ * s_.value_size);
        key_rows_ = take(keys_ * key_stride_);
        key_sums_ = take(keys_ * key_stride_);
        value_sums_ = take(keys_ * value_stride_);
        query_groups_ = take(queries_ * s_.key_size);
        query_rows_ = take(queries_ * key_stride_);
        query_sums_ = take(queries_ * key_stride_);
        output_groups_ = take(queries_ * s_.value_size);
        output_rows_ = take(queries_ * value_stride_);
        row_sums_ = take(queries_);
        weights_ = take(kBackwardRows * kBackwardKeys);
        slopes_ = take(kBackwardRows * kBackwardKeys);
        s_.packed_keys = key_panels_ - task.key_first * s_.key_size;
        s_.packed_head_stride = 0;
    }

    void Run() {
        const std::int64_t first = task_.key_first, width = PanelWidth();
        // value_sums_ holds the values' rows until they are packed.
        CopyRows(s_.key, task_.key_head, first, keys_, s_.key_begin, s_.key_end, s_.key_size, key_rows_, key_stride_);
        CopyRows(s_.value, task_.key_head, first, keys_, s_.key_begin, s_.key_end, s_.value_size, value_sums_,
                 value_stride_);
        TransposeGroups(key_rows_, keys_, key_stride_, s_.key_size, width, 1.0f, key_panels_);
        TransposeGroups(value_sums_, keys_, value_stride_, s_.value_size, width, 1.0f, value_panels_);
        SetZero(key_sums_, keys_ * key_stride_);
        SetZero(value_sums_, keys_ * value_stride_);
        const std::int64_t group = s_.heads / s_.key_heads;
        for (std::int64_t h = task_.key_head * group; h < (task_.key_head + 1) * group; ++h) {
            if (s_.cancel != nullptr && s_.cancel->load(std::memory_order_relaxed)) return;
            Head(h);
        }
        if (task_.sums != nullptr) return;
        const std::int64_t rows = task_.key_last - first;
        if (task_.key.data != nullptr)
            WriteRows(key_sums_, key_stride_, rows, s_.key_size, task_.scale, task_.key, task_.key_head, first);
        if (task_.value.data != nullptr)
            WriteRows(value_sums_, value_stride_, rows, s_.value_size, 1.0f, task_.value, task_.key_head, first);
    }

private:
    void Head(std::int64_t h) {
        CopyRows(s_.query, h, 0, queries_, 0, s_.query_end, s_.key_size, query_rows_, key_stride_);
        CopyRows(task_.output_gradient, h, 0, queries_, 0, s_.query_end, s_.value_size, output_rows_, value_stride_);
        TransposeGroups(query_rows_, queries_, key_stride_, s_.key_size, kRows, s_.query_factor, query_groups_);
        TransposeGroups(output_rows_, queries_, value_stride_, s_.value_size, kRows, 1.0f, output_groups_);
        if (task_.sums == nullptr) {
            if constexpr (N::kTraits.row_mean == RowMean::output)
                SumRows(h);
            else if constexpr (N::kTraits.row_mean == RowMean::zero)
                SetZero(row_sums_, queries_);
            else
                for (std::int64_t i = 0; i < queries_; ++i)
                    row_sums_[i] = i < s_.query_end ? task_.means[h * s_.queries + i] : 0.0f;
        }
        if (s_.sink_logits != nullptr && task_.key_first == 0) Sink(h);
        SetZero(query_sums_, queries_ * key_stride_);
        for (std::int64_t key = task_.key_first; key < task_.key_last; key += kBackwardKeys) {
            for (std::int64_t row = 0; row < s_.query_end; row += kBackwardRows) Tile(h, row, key);
        }
        if (task_.sums == nullptr && task_.query.data != nullptr)
            WriteRows(query_sums_, key_stride_, s_.queries, s_.key_size, task_.scale, task_.query, h, 0);
    }

    /// A sink logit is a key whose value is 0, so its dA is 0: its slope enters the rows' sums, or its gradient is
    /// made.
    void Sink(std::int64_t h) {
        const F32 d;
        const V t = hn::Set(d, s_.sink_logits[h]);
        double gradient = 0.0;
        for (std::int64_t i = 0; i < s_.query_end; ++i) {
            const double slope = double{hn::GetLane(N::WithSlope(d, t, Row(h, i)).slope)};
            if (task_.sums != nullptr)
                task_.sums[h * s_.queries + i].others += slope;
            else
                gradient -= slope * double{row_sums_[i]};
        }
        if (task_.sums == nullptr && task_.sinks != nullptr) task_.sinks[h] = gradient;
    }

    /// sum over keys of A dA = O . dO, row by row.
    void SumRows(std::int64_t h) {
        const F32 d;
        for (std::int64_t i = 0; i < queries_; ++i) {
            V sum = hn::Zero(d);
            if (i < s_.query_end) {
                const std::int64_t at = h * task_.output.head_stride + i * task_.output.row_stride;
                const float* gradient = output_rows_ + i * value_stride_;
                ForVectors(d, s_.value_size, [&](std::int64_t c, const auto& load, const auto&) HWY_ATTR {
                    const V o = task_.output.type == ElementType::float32
                                    ? load(static_cast<const float*>(task_.output.data) + at + c)
                                    : load(static_cast<const std::uint16_t*>(task_.output.data) + at + c);
                    sum = hn::MulAdd(o, load(gradient + c), sum);
                });
            }
            row_sums_[i] = Sum(d, sum);
        }
    }

    void Tile(std::int64_t h, std::int64_t first_row, std::int64_t key) {
        const int rows = static_cast<int>(HWY_MIN(kBackwardRows, s_.queries - first_row));
        const std::int64_t width = HWY_MIN(kBackwardKeys, task_.key_last - key);
        find_rows(s_, first_row, rows, block_);
        const TileView view = view_tile(s_, block_, 0, rows, key, width);
        ForSeenColumns(s_, h, block_, 0, rows, key, view,
                       [&](const Columns& columns) HWY_ATTR { Part(h, first_row, rows, key, width, columns); });
        if (task_.hidden_blocks && task_.blocks != nullptr && view.any) HiddenBlocks(h, first_row, rows, key, width);
    }

    /// Columns [columns.begin, columns.end) of a tile.
    void Part(std::int64_t h, std::int64_t first_row, int rows, std::int64_t key, std::int64_t width,
              const Columns& columns) {
        // The columns whose rows of dK and dV are added to: whole register blocks.
        const std::int64_t begin = columns.begin / kRows * kRows;
        const std::int64_t end = (columns.end + kRows - 1) / kRows * kRows;
        const int groups = (rows + kRows - 1) / kRows;
        for (int g = 0; g < groups; ++g) {
            const int count = HWY_MIN(kRows, rows - g * kRows);
            Group(h, key, ColumnsOf(h, g, count, key, width, columns), g, count, begin, end);
        }
        if (task_.sums != nullptr) return;
        const std::int64_t steps = groups * kRows;
        const float* output_rows = output_rows_ + first_row * value_stride_;
        const float* query_rows = query_rows_ + first_row * key_stride_;
        executed_flops(2 * steps * (end - begin) * (value_stride_ + key_stride_));
        for (std::int64_t c = begin; c < end; c += kRows) {
            const std::int64_t row = key - task_.key_first + c;
            AccumulateProduct<1, static_cast<int>(kBackwardKeys)>(weights_ + c, output_rows, value_stride_, steps,
                                                                  value_sums_ + row * value_stride_);
            AccumulateProduct<1, static_cast<int>(kBackwardKeys)>(slopes_ + c, query_rows, key_stride_, steps,
                                                                  key_sums_ + row * key_stride_);
        }
    }

    /// The columns of a part that a group of queries sees.
    Columns ColumnsOf(std::int64_t h, int g, int count, std::int64_t key, std::int64_t width, const Columns& part) {
        const int row = g * kRows;
        const TileView view = view_tile(s_, block_, row, row + count, key, width);
        Columns own = view.any ? RoundToPanels(view) : Columns{part.begin, part.begin, false};
        own.begin = HWY_MAX(own.begin, part.begin);
        own.end = HWY_MIN(own.end, part.end);
        const std::int64_t end = HWY_MIN(key + own.end, s_.keys);
        if (own.begin >= own.end || !head_sees(s_, h, block_, row, row + count, key + own.begin, end))
            own.end = own.begin;
        return own;
    }

    /// A and dS of kRows queries, and what they add to dQ. Columns [begin, end) that they do not see are set to 0.
    void Group(std::int64_t h, std::int64_t key, const Columns& columns, int g, int count, std::int64_t begin,
               std::int64_t end) {
        const int row = g * kRows;
        const std::int64_t i = block_.first + row;
        float* weights = weights_ + row * kBackwardKeys;
        float* slopes = slopes_ + row * kBackwardKeys;
        if (columns.end > columns.begin) {
            Products(s_, h, key, columns, row, count, weights, slopes);
            if constexpr (N::kTraits.two_runs()) {
                if (task_.sums != nullptr) {
                    for (int r = 0; r < count; ++r) AddSlopes(h, i + r, columns, weights, slopes, r);
                    return;
                }
            }
            for (int r = 0; r < count; ++r) {
                Weigh(h, i + r, columns, weights, slopes, r);
                Drop(s_, h, i + r, key, columns.begin, columns.end, weights + r * kBackwardKeys);
            }
            if (task_.relative != nullptr) AddDistances(h, i, count, key, columns, slopes);
            if (task_.blocks != nullptr) AddBlocks(h, i, count, key, columns, slopes, /*visible=*/true);
        }
        for (int r = 0; r < kRows; ++r) {
            const bool there = r < count && columns.end > columns.begin;
            const std::int64_t seen_begin = there ? columns.begin : end, seen_end = there ? columns.end : end;
            for (float* rows_of : {weights, slopes}) {
                float* at = rows_of + r * kBackwardKeys;
                if (seen_begin > begin) SetZero(at + begin, seen_begin - begin);
                if (end > seen_end) SetZero(at + seen_end, end - seen_end);
            }
        }
        if (columns.end > columns.begin) {
            const float* rows_of_keys = key_rows_ + (key - task_.key_first + columns.begin) * key_stride_;
            AccumulateProduct<static_cast<int>(kBackwardKeys), 1>(slopes + columns.begin, rows_of_keys, key_stride_,
                                                                  columns.end - columns.begin,
                                                                  query_sums_ + i * key_stride_);
        }
    }

    /// S and dA of kRows queries under the rule of `s`; dA is 0 where dropout has left a weight out.
    void Products(const Sequence& s, std::int64_t h, std::int64_t key, const Columns& columns, int row, int count,
                  float* scores, float* products) {
        const std::int64_t i = block_.first + row, panel = PanelWidth();
        std::int64_t pairs[kRows];
        ScoreTile(s, h, block_, row, count, query_groups_ + i * s.key_size, key, columns, scores, kBackwardKeys, pairs);
        executed_flops(2 * kRows * (columns.end - columns.begin) * (s.value_size + key_stride_));
        const float* values = value_panels_ + (key - task_.key_first + columns.begin) * s.value_size;
        for (std::int64_t c = columns.begin; c < columns.end; c += panel, values += panel * s.value_size) {
            MultiplyTwo<1, kRows>(RowIndices(), output_groups_ + i * s.value_size, values, panel, s.value_size, false,
                                  products + c, kBackwardKeys);
        }
        for (int r = 0; r < count; ++r)
            Drop(s, h, i + r, key, columns.begin, columns.end, products + r * kBackwardKeys);
    }

    /// Adds up dS of rows i .. i + count - 1 over the keys of each block that is not the row's own and is seen, or is
    /// not; dS of hidden pairs is 0 where those that are seen are asked for.
    void AddBlocks(std::int64_t h, std::int64_t i, int count, std::int64_t key, const Columns& columns,
                   const float* slopes, bool visible) {
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        const std::int64_t size = s_.block_size, last = HWY_MIN(key + columns.end, s_.keys);
        for (std::int64_t block = (key + columns.begin) / size; block * size < last; ++block) {
            if ((s_.visible[h * s_.blocks + block] != 0) != visible) continue;
            const std::int64_t begin = HWY_MAX(block * size - key, columns.begin);
            const std::int64_t end = HWY_MIN((block + 1) * size - key, last - key);
            double sum = 0.0;
            for (int r = 0; r < count; ++r) {
                const std::int64_t position = i + r + s_.query_offset;
                if (position >= block * size && position < (block + 1) * size) continue;
                const float* slope = slopes + r * kBackwardKeys;
                V vector = hn::Zero(d);
                std::int64_t c = begin;
                for (; c + lanes <= end; c += lanes) vector = hn::Add(vector, hn::LoadU(d, slope + c));
                sum += double{Sum(d, vector)};
                for (; c < end; ++c) sum += double{slope[c]};
            }
            task_.blocks[h * s_.blocks + block] += sum;
        }
    }

    /// Gradient of a factor on the weights of each hidden block, at 0: the same sums under the rule without blocks. Row
    /// constants cover visible keys only, so weights may exceed 1; they saturate at float32's maximum.
    void HiddenBlocks(std::int64_t h, std::int64_t first_row, int rows, std::int64_t key, std::int64_t width) {
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        Sequence open = s_;
        open.block_size = 0;
        const int groups = (rows + kRows - 1) / kRows;
        for (int g = 0; g < groups; ++g) {
            const int row = g * kRows, count = HWY_MIN(kRows, rows - row);
            const TileView view = view_tile(open, block_, row, row + count, key, width);
            if (!view.any) continue;
            const Columns columns = RoundToPanels(view);
            Products(open, h, key, columns, row, count, weights_, slopes_);
            for (int r = 0; r < count; ++r) {
                const std::int64_t at = h * s_.queries + first_row + row + r;
                const RowVectors constants = Row(h, first_row + row + r);
                const V most = hn::Set(d, task_.shift[at] + 127.0f), mean = hn::Set(d, row_sums_[first_row + row + r]);
                for (std::int64_t c = columns.begin; c < columns.end; c += lanes) {
                    const V t = hn::Min(hn::Load(d, weights_ + r * kBackwardKeys + c), most);
                    float* slope = slopes_ + r * kBackwardKeys + c;
                    const V p = N::Weight(d, t, constants);
                    hn::Store(hn::Mul(p, hn::Sub(hn::Load(d, slope), mean)), d, slope);
                }
            }
            AddBlocks(h, first_row + row, count, key, columns, slopes_, /*visible=*/false);
        }
    }

    void AddSlopes(std::int64_t h, std::int64_t i, const Columns& columns, const float* scores, const float* products,
                   int r) {
        const F32 d;
        const RowVectors constants = Row(h, i);
        V sum = hn::Zero(d), others = hn::Zero(d);
        for (std::int64_t c = columns.begin; c < columns.end; c += static_cast<std::int64_t>(hn::Lanes(d))) {
            const WeightAndSlope found = N::WithSlope(d, hn::Load(d, scores + r * kBackwardKeys + c), constants);
            const V product = Counted(d, found, hn::Load(d, products + r * kBackwardKeys + c));
            sum = hn::MulAdd(found.slope, product, sum);
            others = hn::Add(others, N::kTraits.row_mean == RowMean::kept ? product : found.slope);
        }
        SlopeSums& row = task_.sums[h * s_.queries + i];
        row.products += double{Sum(d, sum)};
        row.others += double{Sum(d, others)};
    }

    RowVectors Row(std::int64_t h, std::int64_t i) const {
        return RowAt<N>(F32(), task_.shift, task_.factor, s_.offsets, h * s_.queries + i);
    }

    /// dA as RowMean has it.
    static HWY_INLINE V Counted(F32 d, const WeightAndSlope& found, V product) {
        if constexpr (N::kTraits.row_mean != RowMean::kept) return product;
        return hn::IfThenElseZero(hn::Gt(found.weight, hn::Zero(d)), product);
    }

    /// Adds dS of rows i .. i + count - 1 to the sums by distance, where a bias has a say: rows of the group upon each
    /// other in float32, each one column to the left of the row before, then all of it to the sums.
    void AddDistances(std::int64_t h, std::int64_t i, int count, std::int64_t key, const Columns& columns,
                      const float* slopes) {
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        // Columns of the last row's distances: row r begins count - 1 - r before the end of the shorter ones.
        const std::int64_t zero = key - (i + count - 1 + s_.query_offset) + s_.relative_zero + columns.begin;
        const std::int64_t width = columns.end - columns.begin, all = width + count - 1;
        const std::int64_t begin = HWY_MAX(std::int64_t{0}, s_.relative_begin - zero);
        const std::int64_t end = HWY_MIN(all, s_.relative_end - zero);
        if (begin >= end) return;
        HWY_ALIGN float sums[kBackwardKeys + kMostRows];
        SetZero(sums, all);
        for (int r = 0; r < count; ++r) {
            const float* slope = slopes + r * kBackwardKeys + columns.begin;
            float* to = sums + count - 1 - r;
            for (std::int64_t c = 0; c < width; c += lanes)
                hn::StoreU(hn::Add(hn::LoadU(d, to + c), hn::LoadU(d, slope + c)), d, to + c);
        }
        double* by_distance = task_.relative + h * s_.relative_length + zero;
        for (std::int64_t x = begin; x < end; ++x) by_distance[x] += double{sums[x]};
    }

    void Weigh(std::int64_t h, std::int64_t i, const Columns& columns, float* weights, float* slopes, int r) {
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        const RowVectors constants = Row(h, i);
        const V mean = hn::Set(d, row_sums_[i]);
        float* HWY_RESTRICT weight = weights + r * kBackwardKeys;
        float* HWY_RESTRICT slope = slopes + r * kBackwardKeys;
        const V one = hn::Set(d, 1.0f), inverse_cap = hn::Set(d, s_.soft_cap != 0.0f ? 1.0f / s_.soft_cap : 0.0f);
        for (std::int64_t c = columns.begin; c < columns.end; c += lanes) {
            const V t = hn::Load(d, weight + c);
            const WeightAndSlope found = N::WithSlope(d, t, constants);
            V ds = hn::Mul(found.slope, hn::Sub(Counted(d, found, hn::Load(d, slope + c)), mean));
            if (s_.soft_cap != 0.0f) {
                // A masked score is far below the cap: its share is cut to -1, and 1 - 1 leaves nothing.
                const V share = hn::Max(hn::Neg(one), hn::Min(one, hn::Mul(t, inverse_cap)));
                ds = hn::Mul(ds, hn::NegMulAdd(share, share, one));
            }
            hn::Store(found.weight, d, weight + c);
            hn::Store(ds, d, slope + c);
        }
    }

    const BackwardTask& task_;
    Sequence s_;
    std::int64_t keys_ = 0, queries_ = 0, key_stride_ = 0, value_stride_ = 0;
    float *key_panels_, *value_panels_, *key_rows_, *key_sums_, *value_sums_;
    float *query_groups_, *query_rows_, *query_sums_, *output_groups_, *output_rows_, *row_sums_, *weights_, *slopes_;
    BlockRows block_;
};

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
