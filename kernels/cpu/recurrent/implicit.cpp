// SPDX-License-Identifier: GPL-3.0-or-later
// Rows of the implicit matrix of one head, walked back from their queries: W [dk, rows] begins with the queries and is
// what a key still counts for, A_ij = scale w_j W_i . k_j; a token j takes its part, W <- e^g_j (W - w_j k_j (k_j .
// W)).
#include <cmath>
#include <utility>

#include "kernels/cpu/recurrent/recurrent.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/recurrent/implicit.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/recurrent/recurrent-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kRows = kImplicitRows;

class ImplicitPass {
public:
    explicit ImplicitPass(const ImplicitTask& task) : task_(task), head_(task.head), size_(task.head.key_size) {
        stride_ = pad_to_line(size_);
        width_ = TileWidth();
        tiles_ = (task.rows + width_ - 1) / width_;
        float* at = task.scratch;
        const auto take = [&at](std::int64_t floats) { return std::exchange(at, at + floats); };
        rows_ = take(size_ * kRows);
        after_ = take(size_ * kRows);
        keys_ = take(kBlock * stride_);
        between_ = take((kBlock + 1) * stride_);
        query_ = take(stride_);
        decay_ = take(stride_);
        weights_ = take(kGroup * kRows);
        for (Block& block : blocks_) PlaceBlock(take(block_floats(stride_)), stride_, block);
    }

    void Run() {
        for (std::int64_t r = 0; task_.out != nullptr && r < task_.rows; ++r)
            SetZero(task_.out + r * task_.out_stride, task_.key_end - task_.key_begin);
        for (std::int64_t r = 0; task_.statistics != nullptr && r < task_.rows; ++r) task_.statistics[r] = {};
        const std::int64_t end = HWY_MIN(task_.first + task_.rows, head_.real);
        if (task_.first >= end) return;
        SetZero(rows_, size_ * kRows);
        const bool chunks = head_.chunk_size > 0;
        std::int64_t chunk = chunks ? task_.first / head_.chunk_size : 0;
        const std::int64_t begin = chunk * head_.chunk_size;
        if (chunks && !head_.reads_own_chunk) {
            BeginBefore(begin, end);
        } else {
            // A row joins at its own token.
            for (std::int64_t j = end - 1; j >= HWY_MAX(task_.first, task_.key_begin); --j) {
                CopyRows(head_.query, head_.key_head, j, 1, 0, head_.real, size_, query_, stride_);
                SetRow(j - task_.first);
                Group(j, j + 1, 1.0f);
            }
            Walk(begin, task_.first, 1.0f);
        }
        while (chunk-- > 0 && !IsCancelled(head_) && (chunk + 1) * head_.chunk_size > task_.key_begin)
            EarlierChunk(chunk * head_.chunk_size, (chunk + 1) * head_.chunk_size, head_.kept[chunk]);
    }

private:
    float* Tile(std::int64_t n) const { return rows_ + n * size_ * width_; }

    /// query_ becomes row r of W.
    void SetRow(std::int64_t r) {
        float* tile = Tile(r / width_) + r % width_;
        for (std::int64_t c = 0; c < size_; ++c) tile[c * width_] = query_[c];
    }

    /// Rows that do not read their own chunk meet what was there at its start, decayed up to their token.
    void BeginBefore(std::int64_t begin, std::int64_t end) {
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        Fill(decay_, stride_, 1.0f);
        for (std::int64_t i = begin; i < end; ++i) {
            AddDecay(i);
            if (i < task_.first) continue;
            CopyRows(head_.query, head_.key_head, i, 1, 0, head_.real, size_, query_, stride_);
            for (std::int64_t c = 0; c < stride_; c += lanes) {
                hn::Store(hn::Mul(hn::Load(d, query_ + c), hn::Load(d, decay_ + c)), d, query_ + c);
            }
            SetRow(i - task_.first);
        }
    }

    void AddDecay(std::int64_t token) {
        const F32 d;
        ReadDecay(head_, token, stride_, between_);
        for (std::int64_t c = 0; c < stride_; c += static_cast<std::int64_t>(hn::Lanes(d))) {
            hn::Store(hn::Mul(hn::Load(d, decay_ + c), hn::Load(d, between_ + c)), d, decay_ + c);
        }
    }

    /// Keys [begin, end) of a chunk that counts `kept` times.
    void EarlierChunk(std::int64_t begin, std::int64_t end, float kept) {
        if (kept == 1.0f) {
            Walk(begin, end, 1.0f);
            return;
        }
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        Fill(decay_, stride_, 1.0f);
        for (std::int64_t i = begin; head_.decays_dropped && i < end; ++i) AddDecay(i);
        const std::int64_t all = tiles_ * size_ * width_;
        for (std::int64_t x = 0; x < all; x += lanes) {
            const V decay = hn::Set(d, decay_[x / width_ % size_]);
            hn::Store(hn::Mul(decay, hn::Load(d, rows_ + x)), d, after_ + x);
        }
        if (kept == 0.0f) {
            std::swap(rows_, after_);
            return;
        }
        Walk(begin, end, kept);
        const V factor = hn::Set(d, kept);
        for (std::int64_t x = 0; x < all; x += lanes) {
            const V skipped = hn::Load(d, after_ + x);
            hn::Store(hn::MulAdd(factor, hn::Sub(hn::Load(d, rows_ + x), skipped), skipped), d, rows_ + x);
        }
    }

    void Walk(std::int64_t begin, std::int64_t end, float kept) {
        begin = HWY_MAX(begin, task_.key_begin);
        for (; end > begin && !IsCancelled(head_); end -= kGroup) Group(HWY_MAX(begin, end - kGroup), end, kept);
    }

    /// Keys [begin, end), kGroup at most, the last one first.
    void Group(std::int64_t begin, std::int64_t end, float kept) {
        const std::int64_t count = end - begin, blocks = (count + kBlock - 1) / kBlock;
        for (std::int64_t n = 0; n < blocks; ++n)
            Prepare(blocks_[n], end - 1 - n * kBlock, HWY_MIN(kBlock, count - n * kBlock));
        executed_flops(2 * size_ * tiles_ * width_ * count * (head_.delta ? 2 : 1));
        for (std::int64_t n = 0; n < tiles_; ++n) {
            for (std::int64_t x = 0; x < blocks; ++x) {
                if (blocks_[x].tokens == 1)
                    Meet<1>(n, blocks_[x], x, kept);
                else
                    Meet<kBlock>(n, blocks_[x], x, kept);
            }
        }
        Leave(begin, end);
    }

    /// Tokens last, last - 1, ..: a token's decay comes after it.
    void Prepare(Block& block, std::int64_t last, std::int64_t count) {
        block.tokens = count;
        Fill(between_, stride_, 1.0f);
        for (std::int64_t t = 0; t < kBlock; ++t) {
            float *key = keys_ + t * stride_, *decay = between_ + (t + 1) * stride_;
            block.weight[t] = 0.0f;
            if (t >= count) {
                SetZero(key, stride_);
                Fill(decay, stride_, 1.0f);
                continue;
            }
            CopyRows(head_.key, head_.key_head, last - t, 1, 0, head_.real, size_, key, stride_);
            ReadDecay(head_, last - t, stride_, decay);
            block.weight[t] = head_.write.data == nullptr ? 1.0f : NumberAt(head_.write, head_.head, last - t);
        }
        MakeBlock(keys_, nullptr, between_, nullptr, stride_, block);
    }

    /// The weights of block x of a group for the rows of tile n, and the tile before those tokens.
    template <int T>
    void Meet(std::int64_t n, const Block& block, std::int64_t x, float kept) {
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        HWY_ALIGN float read[T * kTileVectors * hn::MaxLanes(F32())], u[T * kTileVectors * hn::MaxLanes(F32())];
        MeetTile<false>(Tokens<T>(), Tile(n), width_, size_, block.keys, nullptr, read, nullptr);
        const V scale = hn::Set(d, head_.scale * kept);
        float* weights = weights_ + x * kBlock * kRows + n * width_;
        for (int v = 0; v < kTileVectors; ++v) {
            V taken[T];
            for (int t = 0; t < T; ++t) {
                const std::int64_t at = (t * kTileVectors + v) * lanes;
                V sum = hn::Load(d, read + at);
                for (int s = 0; head_.delta && s < t; ++s)
                    sum = hn::MulAdd(hn::Set(d, block.of_keys[PairAt(t, s)]), taken[s], sum);
                sum = hn::Mul(hn::Set(d, block.weight[t]), sum);
                hn::Store(hn::Mul(scale, sum), d, weights + t * kRows + v * lanes);
                taken[t] = head_.delta ? hn::Neg(sum) : hn::Zero(d);
                hn::Store(taken[t], d, u + at);
            }
        }
        if (head_.delta || head_.log_decay.data != nullptr) WriteTile(Tokens<T>(), Tile(n), width_, size_, block, u);
    }

    /// The weights of a group of keys to where they are wanted. Row s of weights_ is key end - 1 - s.
    void Leave(std::int64_t begin, std::int64_t end) {
        const std::int64_t count = end - begin, columns = tiles_ * width_;
        for (std::int64_t j = HWY_MAX(begin, task_.first); head_.direct != 0.0f && j < end; ++j)
            weights_[(end - 1 - j) * kRows + j - task_.first] += head_.direct;
        for (std::int64_t r = 0; task_.out != nullptr && r < task_.rows; ++r) {
            float* to = task_.out + r * task_.out_stride - task_.key_begin;
            for (std::int64_t s = 0; s < count; ++s)
                if (end - 1 - s < task_.key_end) to[end - 1 - s] = weights_[s * kRows + r];
        }
        if (task_.statistics == nullptr) return;
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        HWY_ALIGN float sums[4][hn::MaxLanes(F32())];
        for (std::int64_t r = 0; r < columns; r += lanes) {
            V most = hn::Zero(d);
            for (std::int64_t s = 0; s < count; ++s)
                most = hn::Max(most, hn::Abs(hn::Load(d, weights_ + s * kRows + r)));
            V unit;
            const V power = PowerBelow(most, unit);
            V sum = hn::Zero(d), logarithms = hn::Zero(d), squares = hn::Zero(d);
            for (std::int64_t s = 0; s < count; ++s) {
                const V a = hn::Abs(hn::Load(d, weights_ + s * kRows + r));
                // NaN is not below, so that it shows.
                const auto none = hn::Lt(a, hn::Set(d, kSmallestNormal));
                const V logarithm = hn::Log(d, hn::IfThenElse(none, hn::Set(d, 1.0f), a));
                const V scaled = hn::Mul(a, unit);
                sum = hn::Add(sum, scaled);
                logarithms = hn::MulAdd(scaled, logarithm, logarithms);
                squares = hn::MulAdd(scaled, scaled, squares);
            }
            hn::Store(sum, d, sums[0]);
            hn::Store(logarithms, d, sums[1]);
            hn::Store(squares, d, sums[2]);
            hn::Store(power, d, sums[3]);
            for (std::int64_t x = 0; x < HWY_MIN(lanes, task_.rows - r); ++x) {
                ImplicitRow& row = task_.statistics[r + x];
                const double scale = sums[3][x];
                row.sum += scale * sums[0][x];
                row.logarithms += scale * sums[1][x];
                row.squares += scale * scale * sums[2][x];
            }
        }
    }

    /// The largest power of two that is not above `most`, at least 2^-126 and at most 2^126; `unit`: 1 over it. Sums
    /// and squares of weights times `unit` neither overflow nor vanish beside the largest one. Both are exact.
    static V PowerBelow(V most, V& unit) {
        const F32 d;
        const hn::RebindToUnsigned<F32> di;
        const auto exponent = hn::And(hn::BitCast(di, most), hn::Set(di, 0x7F800000u));
        const auto bounded = hn::Min(hn::Max(exponent, hn::Set(di, 1u << 23)), hn::Set(di, 253u << 23));
        unit = hn::BitCast(d, hn::Sub(hn::Set(di, 254u << 23), bounded));
        return hn::BitCast(d, bounded);
    }

    const ImplicitTask& task_;
    const RecurrentHead& head_;
    std::int64_t size_, stride_ = 0, width_ = 0, tiles_ = 0;
    float *rows_, *after_, *keys_, *between_, *query_, *decay_, *weights_;
    Block blocks_[kGroupBlocks];
};

void Implicit(const ImplicitTask& task) {
    ImplicitPass(task).Run();
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(Implicit);

void implicit_task(const ImplicitTask& task) {
    HWY_DYNAMIC_DISPATCH(Implicit)(task);
}

std::int64_t implicit_scratch(std::int64_t key_size) {
    const std::int64_t stride = pad_to_line(key_size), group = kRecurrentGroup;
    return 2 * key_size * kImplicitRows + (2 * kRecurrentBlock + 3) * stride + group * kImplicitRows +
           group / kRecurrentBlock * (3 * kRecurrentBlock + 1) * stride;
}

}  // namespace headscope::kernels::cpu
#endif
