// SPDX-License-Identifier: GPL-3.0-or-later
// The second pass: weights, what is measured on them, and O = A V. For a query block, key blocks outside, then heads,
// then groups of rows: the spread across heads of a tile is at hand when the last head is through.
#include "kernels/cpu/attention/row_results.h"
#include "kernels/cpu/attention/tasks.h"
#include "kernels/cpu/attention/visibility.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/pass_two.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/attention/dropout-inl.h"
#include "kernels/cpu/attention/normalisers-inl.h"
#include "kernels/cpu/attention/scores-inl.h"
#include "kernels/cpu/attention/second_order-inl.h"
#include "kernels/cpu/attention/values-inl.h"
#include "kernels/cpu/attention/weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

template <class N>
class WeightPass {
public:
    explicit WeightPass(const PassTwoTask& task) : task_(task), s_(*task.sequence) {
        heads_ = task.head_end - task.head_begin;
        groups_ = (task.rows + kRows - 1) / kRows;
        query_stride_ = kRows * pad_to_line(s_.key_size);
        value_stride_ = pad_to_line(s_.value_size);
        float* next = task.scratch;
        const auto take = [&next](std::int64_t floats) {
            float* at = next;
            next += floats;
            return at;
        };
        queries_ = take(heads_ * groups_ * query_stride_);
        output_ = take(heads_ * groups_ * kRows * value_stride_);
        value_ = take(kTileKeys * value_stride_);
        weights_ = take(kRows * kTileKeys);
        mean_ = take(groups_ * kRows * kTileKeys);
        squares_ = take(groups_ * kRows * kTileKeys);
        part_sums_ = take(task.rows * kTileKeys);
        part_maxima_ = take(task.rows * kTileKeys);
        second_ = take(second_order_scratch(s_));
    }

    void Run() {
        find_rows(s_, task_.first_row, task_.rows, block_);
        Prepare();
        const std::int64_t first = block_.first_key / kTileKeys * kTileKeys;
        for (std::int64_t key = first; key < block_.last_key; key += kTileKeys) {
            if (s_.cancel != nullptr && s_.cancel->load(std::memory_order_relaxed)) return;
            KeyBlock(key);
        }
        if (task_.output.data != nullptr) WriteOutput();
        if (task_.diversity != nullptr) *task_.diversity = diversity_;
        FinishRows();
    }

private:
    bool Measures() const { return task_.weights != nullptr; }
    int RowsOf(int g) const { return HWY_MIN(kRows, task_.rows - g * kRows); }
    float* QueriesOf(std::int64_t head, int g) const { return queries_ + (head * groups_ + g) * query_stride_; }
    float* OutputOf(std::int64_t head, int g) const { return output_ + (head * groups_ + g) * kRows * value_stride_; }
    std::int64_t RowOf(std::int64_t h, int r) const { return h * s_.queries + task_.first_row + r; }

    void Prepare() {
        for (std::int64_t n = 0; n < heads_; ++n) {
            for (int g = 0; g < groups_; ++g) {
                PackQueries(s_, task_.head_begin + n, task_.first_row + g * kRows, RowsOf(g), QueriesOf(n, g));
            }
        }
        const std::int64_t floats = heads_ * groups_ * kRows * value_stride_;
        for (std::int64_t x = 0; x < floats; ++x) output_[x] = 0.0f;
        for (std::int64_t x = 0; x < kRows * kTileKeys; ++x) weights_[x] = 0.0f;
        if (!Measures()) return;
        // Rows of one thumbnail row form a part, whose column sums are kept together.
        parts_ = 0;
        int pieces = 0;
        for (int r = 0; r < task_.rows; ++r) {
            const std::int64_t cell = task_.totals != nullptr ? task_.totals->cell_row(task_.first_row + r) : 0;
            const bool fresh = r == 0 || cell != part_cell_[parts_ - 1];
            if (fresh) part_cell_[parts_++] = cell;
            const int in_group = r % kRows;
            if (in_group == 0) first_piece_[r / kRows] = pieces;
            if (fresh || in_group == 0) pieces_[pieces++] = {in_group, in_group, parts_ - 1};
            ++pieces_[pieces - 1].end;
        }
        first_piece_[groups_] = pieces;
    }

    void KeyBlock(std::int64_t key) {
        const std::int64_t width = HWY_MIN(kTileKeys, s_.keys - key);
        bool any = false;
        for (int g = 0; g < groups_; ++g) {
            views_[g] = view_tile(s_, block_, g * kRows, g * kRows + RowsOf(g), key, width);
            any = any || views_[g].any;
        }
        if (!any) return;
        if (task_.tokens != nullptr) {
            task_.segments->duplicate.clear();
            task_.segments->induction.clear();
            task_.tokens->find(task_.first_row + s_.query_offset, task_.rows, key, width, *task_.segments);
        }
        std::int64_t packed_head = -1;
        for (std::int64_t n = 0; n < heads_; ++n) {
            const std::int64_t h = task_.head_begin + n, value_head = h / (s_.heads / s_.key_heads);
            if (task_.output.data != nullptr && value_head != packed_head) {
                PackValues(s_, value_head, key, width, 0, kTileKeys, value_, value_stride_);
                packed_head = value_head;
            }
            if (Measures()) ClearParts();
            Head(n, h, key, width);
            if (Measures() && task_.totals != nullptr) {
                for (int part = 0; part < parts_; ++part) {
                    task_.totals->add(h, part_cell_[part], key, width, part_sums_ + part * kTileKeys,
                                      part_maxima_ + part * kTileKeys);
                }
            }
        }
        if (task_.diversity != nullptr) {
            for (int g = 0; g < groups_; ++g) {
                if (!views_[g].any) continue;
                const Columns columns = RoundToPanels(views_[g]);
                diversity_ +=
                    SumOfDeviations(squares_ + g * kRows * kTileKeys, RowsOf(g), columns.begin, columns.end, heads_);
            }
        }
    }

    void ClearParts() {
        for (std::int64_t x = 0; x < parts_ * kTileKeys; ++x) part_sums_[x] = part_maxima_[x] = 0.0f;
    }

    void Head(std::int64_t n, std::int64_t h, std::int64_t key, std::int64_t width) {
        std::size_t duplicate = 0, induction = 0;
        for (int g = 0; g < groups_; ++g) {
            if (!views_[g].any) continue;
            const int row = g * kRows, count = RowsOf(g);
            const Columns columns = RoundToPanels(views_[g]);
            std::int64_t pairs[kRows] = {};
            const bool sees = head_sees(s_, h, block_, row, row + count, key, key + width);
            if (sees) {
                ScoreTile(s_, h, block_, row, count, QueriesOf(n, g), key, columns, weights_, kTileKeys, pairs);
            } else if (task_.diversity != nullptr) {
                MaskTile(weights_, columns.begin, columns.end);
            } else {
                continue;
            }
            if constexpr (N::kTraits.is_signed()) SetWeights(n, h, g, key, columns);
            Weigh(n, h, g, key, columns);
            if (Measures()) MeasureRows(n, h, g, key, columns, pairs, duplicate, induction);
            if (task_.output.data != nullptr && sees) {
                for (int r = 0; r < count; ++r)
                    Drop(s_, h, task_.first_row + row + r, key, columns.begin, columns.end, weights_ + r * kTileKeys);
                MultiplyValues(weights_, value_, columns.begin, columns.end, value_stride_, OutputOf(n, g));
            }
        }
    }

    void SetWeights(std::int64_t n, std::int64_t h, int g, std::int64_t key, const Columns& columns) {
        const int row = g * kRows, count = RowsOf(g);
        if constexpr (N::kTraits.diagonal)
            ScoreSquares(s_, h, QueriesOf(n, g), key, columns, second_ + kRows * kTileKeys, second_);
        for (int r = 0; r < count; ++r) {
            const std::int64_t at = RowOf(h, row + r), keys = block_.end[row + r] - block_.begin[row + r];
            N::SetWeights(weights_ + r * kTileKeys, second_ + r * kTileKeys, columns.begin, columns.end, keys,
                          task_.constants.shift[at], task_.constants.factor[at]);
        }
    }

    void Weigh(std::int64_t n, std::int64_t h, int g, std::int64_t key, const Columns& columns) {
        const int row = g * kRows, count = RowsOf(g);
        const float* shift = task_.constants.shift + RowOf(h, row);
        const float* factor = task_.constants.factor + RowOf(h, row);
        const float* offset = s_.offsets == nullptr ? nullptr : s_.offsets + RowOf(h, row);
        WeighedTile tile{weights_, count, columns.begin, columns.end, shift, factor, offset};
        if (!Measures()) {
            WeighPlain<N>(tile);
            return;
        }
        tile.mean = mean_ + row * kTileKeys;
        tile.squares = squares_ + row * kTileKeys;
        tile.head = n;
        tile.part_sums = part_sums_;
        tile.part_maxima = part_maxima_;
        tile.part_begin = pieces_ + first_piece_[g];
        tile.part_end = pieces_ + first_piece_[g + 1];
        tile.distance = static_cast<float>(task_.first_row + row + s_.query_offset - key);
        double distance = 0.0;
        if (task_.diversity == nullptr)
            distance = WeighAndMeasure<N, 0>(tile);
        else if (n == 0)
            distance = WeighAndMeasure<N, 1>(tile);
        else
            distance = WeighAndMeasure<N, 2>(tile);
        task_.weights[n].distance += distance;
    }

    /// Statistics of single rows of weights.
    void MeasureRows(std::int64_t n, std::int64_t h, int g, std::int64_t key, const Columns& columns,
                     const std::int64_t* pairs, std::size_t& duplicate, std::size_t& induction) {
        BlockWeights& sums = task_.weights[n];
        const int row = g * kRows, count = RowsOf(g);
        const auto inside = [&](std::int64_t column) { return column >= columns.begin && column < columns.end; };
        for (int r = 0; r < count; ++r) {
            const float* weights = weights_ + r * kTileKeys;
            const std::int64_t position = task_.first_row + row + r + s_.query_offset;
            if (inside(s_.key_begin - key)) {
                const float sink = weights[s_.key_begin - key];
                sums.sink += double{sink};
                if (task_.query_sink != nullptr) task_.query_sink[RowOf(h, row + r)] = sink;
            }
            for (std::int64_t x = 0; x < task_.distance_count; ++x) {
                const std::int64_t column = position - task_.distances[x] - key;
                if (inside(column)) task_.local[n * task_.distance_count + x] += double{weights[column]};
            }
            const std::int64_t at = RowOf(h, row + r);
            if (N::kTraits.is_signed() || HasZeros<N>(task_.constants, s_.offsets, at)) {
                sums.zeros += pairs[r] - CountNormal(weights, columns.begin, columns.end);
            }
            if (!N::kEntropyOnline || task_.query_distance != nullptr) {
                const RowSums found = SumRow(weights, columns.begin, columns.end, static_cast<float>(position - key));
                RowSums& total = RowTotals(n, row + r);
                total.mass += found.mass;
                total.squares += found.squares;
                total.entropy +=
                    N::kTraits.is_signed() && HasNegative(weights, columns.begin, columns.end) ? kNaN : found.entropy;
                total.distance += found.distance;
            }
        }
        if (task_.tokens == nullptr) return;
        sums.duplicate += Gather(task_.segments->duplicate, row, count, columns, duplicate);
        sums.induction += Gather(task_.segments->induction, row, count, columns, induction);
    }

    /// Sum of the group's weights on its segments; `next` walks the list, whose rows rise.
    double Gather(const std::vector<Segment>& list, int row, int count, const Columns& columns, std::size_t& next) {
        const Segment* segment = list.data();
        const std::size_t size = list.size();
        double total = 0.0;
        while (next < size && segment[next].row < row) ++next;
        for (; next < size && segment[next].row < row + count; ++next) {
            const float* weights = weights_ + (segment[next].row - row) * kTileKeys;
            const std::int64_t begin = HWY_MAX(std::int64_t{segment[next].begin}, columns.begin);
            const std::int64_t end = HWY_MIN(std::int64_t{segment[next].end}, columns.end);
            if (end - begin == 1)
                total += double{weights[begin]};
            else if (end > begin)
                total += double{SumRange(weights, begin, end)};
        }
        return total;
    }

    void WriteOutput() {
        for (std::int64_t n = 0; n < heads_; ++n) {
            for (int r = 0; r < task_.rows; ++r) {
                const float* from = OutputOf(n, r / kRows) + (r % kRows) * value_stride_;
                float* to = task_.output.data + (task_.head_begin + n) * task_.output.head_stride +
                            (task_.first_row + r) * task_.output.row_stride;
                for (std::int64_t x = 0; x < s_.value_size; ++x) to[x] = from[x];
            }
        }
    }

    RowSums& RowTotals(std::int64_t n, int r) { return task_.row_sums[n * task_.rows + r]; }

    void FinishRows() {
        if (!Measures() || (N::kEntropyOnline && task_.query_distance == nullptr)) return;
        for (std::int64_t n = 0; n < heads_; ++n) {
            for (int r = 0; r < task_.rows; ++r) {
                const RowSums& row = RowTotals(n, r);
                const std::int64_t at = RowOf(task_.head_begin + n, r);
                if (task_.query_distance != nullptr) task_.query_distance[at] = static_cast<float>(row.distance);
                if constexpr (!N::kEntropyOnline) {
                    task_.weights[n].entropy += row.entropy;
                    task_.weights[n].squares += row.squares;
                    task_.weights[n].mass += row.mass;
                    if (task_.query_entropy != nullptr) task_.query_entropy[at] = static_cast<float>(row.entropy);
                    if (task_.query_squares != nullptr) task_.query_squares[at] = static_cast<float>(row.squares);
                }
            }
        }
    }

    const PassTwoTask& task_;
    const Sequence& s_;
    std::int64_t heads_ = 0, query_stride_ = 0, value_stride_ = 0;
    int groups_ = 0;
    float *queries_, *output_, *value_, *weights_, *mean_, *squares_, *part_sums_, *part_maxima_, *second_;
    BlockRows block_;
    TileView views_[kMaxBlockRows / kRows];
    int parts_ = 1;
    std::int64_t part_cell_[kMaxBlockRows];
    RowPart pieces_[kMaxBlockRows];  // parts, cut at groups
    int first_piece_[kMaxBlockRows / kRows + 1];
    double diversity_ = 0.0;
};

template <class N>
struct SecondPass {
    static void Run(const PassTwoTask& task) { WeightPass<N>(task).Run(); }
};

void PassTwo(const PassTwoTask& task) {
    RunNormaliser<SecondPass>(task);
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(PassTwo);

void pass_two(const PassTwoTask& task) {
    HWY_DYNAMIC_DISPATCH(PassTwo)(task);
}

std::int64_t pass_two_scratch(const Sequence& s, std::int64_t rows, std::int64_t heads) {
    const std::int64_t padded = (rows + kMostRows - 1) / kMostRows * kMostRows;
    const std::int64_t key_size = pad_to_line(s.key_size), value_size = pad_to_line(s.value_size);
    return heads * padded * (key_size + value_size) + kTileKeys * value_size +
           (kMostRows + 2 * padded + 2 * rows) * kTileKeys + second_order_scratch(s);
}

}  // namespace headscope::kernels::cpu
#endif
