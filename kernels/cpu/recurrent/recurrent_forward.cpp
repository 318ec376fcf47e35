// SPDX-License-Identifier: GPL-3.0-or-later
// Some value columns of one head from the first token to the last, in groups of blocks: a group's numbers are made once
// and then met by one tile after another.
#include <cmath>
#include <utility>

#include "kernels/cpu/recurrent/recurrent.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/recurrent/recurrent_forward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/recurrent/recurrent-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kFewTokens = 8;  // that are not worth a copy of the state

class RecurrentPass {
public:
    explicit RecurrentPass(const RecurrentTask& task) : task_(task), head_(task.head), size_(task.head.key_size) {
        stride_ = pad_to_line(size_);
        width_ = TileWidth();
        tiles_ = (task.columns + width_ - 1) / width_;
        columns_ = tiles_ * width_;
        float* at = task.scratch;
        const auto take = [&at](std::int64_t floats) { return std::exchange(at, at + floats); };
        state_ = {take(size_ * columns_), width_, size_ * width_};
        start_ = {take(size_ * columns_), width_, size_ * width_};
        keys_ = take(kBlock * stride_);
        queries_ = take(kBlock * stride_);
        between_ = take((kBlock + 1) * stride_);
        faded_ = take(stride_);
        sum_ = take(stride_);
        values_ = take(kGroup * columns_);
        output_ = take(kGroup * columns_);
        for (Block& block : blocks_) PlaceBlock(take(block_floats(stride_)), stride_, block);
        in_place_ = task.now != nullptr && head_.real <= kFewTokens && task.columns % width_ == 0;
        if (!in_place_) return;
        state_ = {task.now + task.first_column, task.value_size, width_};
        if (task.start != nullptr) start_ = {task.start + task.first_column, task.value_size, width_};
    }

    void Run() {
        Begin();
        float* piece = task_.pieces;
        for (std::int64_t first = 0; first < head_.real;) {
            if (IsCancelled(head_)) return;
            if (piece != nullptr) {
                CopyOut(state_, piece);
                piece += size_ * task_.value_size;
            }
            const std::int64_t until_end = head_.chunk_size == 0 ? head_.real : head_.chunk_size - position_;
            const std::int64_t end = HWY_MIN(head_.real, first + HWY_MIN(until_end, kRecurrentPiece));
            for (std::int64_t token = first; token < end; token += kGroup) Group(token, HWY_MIN(kGroup, end - token));
            position_ += end - first;
            first = end;
            if (head_.chunk_size > 0 && position_ == head_.chunk_size) EndChunk();
        }
        Padding();
        if (task_.decay_after != nullptr)
            for (std::int64_t c = 0; c < (head_.channels ? size_ : 1); ++c) task_.decay_after[c] = sum_[c];
        if (in_place_) return;
        if (task_.now != nullptr) CopyOut(state_, task_.now);
        if (task_.start != nullptr) CopyOut(start_, task_.start);
    }

private:
    /// [dk, columns] as tiles: row r of tile n is at data + n * step + r * stride.
    struct Tiles {
        float* data = nullptr;
        std::int64_t stride = 0, step = 0;
        float* Row(std::int64_t tile, std::int64_t r) const { return data + tile * step + r * stride; }
    };

    void Begin() {
        const bool goes_on = task_.now != nullptr, open = head_.chunk_begin > 0;
        position_ = head_.chunk_begin;
        for (std::int64_t c = 0; c < stride_; ++c) {
            sum_[c] = !open || task_.decay == nullptr || (head_.channels && c >= size_)
                          ? 0.0f
                          : task_.decay[head_.channels ? c : 0];
            faded_[c] = std::exp(sum_[c]);
        }
        if (!in_place_) {
            if (goes_on)
                CopyIn(task_.now, state_);
            else
                SetZero(state_.data, tiles_ * state_.step);
        }
        if (head_.chunk_size == 0) return;
        if (!open)
            CopyTiles(state_, start_);
        else if (start_.data != task_.start + task_.first_column)
            CopyIn(task_.start, start_);
    }

    template <class Step>
    void ForRows(const Step& step) const {
        for (std::int64_t n = 0; n < tiles_; ++n) {
            const std::int64_t columns = HWY_MIN(width_, task_.columns - n * width_);
            for (std::int64_t r = 0; r < size_; ++r)
                step(n, r, r * task_.value_size + task_.first_column + n * width_, columns);
        }
    }
    void CopyIn(const float* from, const Tiles& to) const {
        ForRows([&](std::int64_t n, std::int64_t r, std::int64_t at, std::int64_t columns) {
            float* row = to.Row(n, r);
            for (std::int64_t c = 0; c < width_; ++c) row[c] = c < columns ? from[at + c] : 0.0f;
        });
    }
    void CopyOut(const Tiles& from, float* to) const {
        ForRows([&](std::int64_t n, std::int64_t r, std::int64_t at, std::int64_t columns) {
            const float* row = from.Row(n, r);
            for (std::int64_t c = 0; c < columns; ++c) to[at + c] = row[c];
        });
    }
    void CopyTiles(const Tiles& from, const Tiles& to) const {
        ForRows([&](std::int64_t n, std::int64_t r, std::int64_t, std::int64_t) {
            const float* row = from.Row(n, r);
            float* target = to.Row(n, r);
            for (std::int64_t c = 0; c < width_; ++c) target[c] = row[c];
        });
    }

    HWY_INLINE HeadMatrix Columns(HeadMatrix m) const {
        const std::int64_t bytes = task_.first_column * (m.type == ElementType::float32 ? 4 : 2);
        m.data = static_cast<const char*>(m.data) + bytes;
        return m;
    }

    /// At most kGroup tokens of one piece.
    void Group(std::int64_t first, std::int64_t count) {
        const std::int64_t blocks = (count + kBlock - 1) / kBlock;
        for (std::int64_t n = 0; n < blocks; ++n)
            Prepare(blocks_[n], first + n * kBlock, HWY_MIN(kBlock, count - n * kBlock));
        CopyRows(Columns(task_.value), head_.head, first, blocks * kBlock, 0, first + count, task_.columns, values_,
                 columns_);
        const std::int64_t reads = head_.delta ? 3 : 2;
        executed_flops(2 * size_ * tiles_ * width_ * count * reads);
        for (std::int64_t n = 0; n < tiles_; ++n) {
            FetchAhead(first + kGroup, n);
            for (std::int64_t x = 0; x < blocks; ++x) {
                if (blocks_[x].tokens == 1)
                    Meet<1>(n, blocks_[x], x);
                else
                    Meet<kBlock>(n, blocks_[x], x);
            }
        }
        HeadTarget target = task_.output;
        const std::int64_t bytes = task_.first_column * (target.type == ElementType::float32 ? 4 : 2);
        target.data = static_cast<char*>(target.data) + bytes;
        WriteRows(output_, columns_, count, task_.columns, head_.scale, target, head_.head, first);
    }

    /// Rows of a head are far apart where heads lie side by side, and the processor's own prefetching does not follow:
    /// each tile's work hides some of the next group's, which begins at `first`. Inlined, for GCC drops a call that
    /// only prefetches.
    HWY_INLINE void FetchAhead(std::int64_t first, std::int64_t tile) const {
        const HeadMatrix value = Columns(task_.value);
        const std::int64_t begin = first + tile * kGroup / tiles_, end = first + (tile + 1) * kGroup / tiles_;
        for (std::int64_t i = begin; i < HWY_MIN(end, head_.real); ++i) {
            Prefetch(head_.key, head_.key_head * head_.key.head_stride + i * head_.key.row_stride, size_);
            Prefetch(head_.query, head_.key_head * head_.query.head_stride + i * head_.query.row_stride, size_);
            Prefetch(value, head_.head * value.head_stride + i * value.row_stride, task_.columns);
        }
    }

    void Prepare(Block& block, std::int64_t first, std::int64_t count) {
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        block.tokens = count;
        CopyRows(head_.key, head_.key_head, first, kBlock, 0, first + count, size_, keys_, stride_);
        CopyRows(head_.query, head_.key_head, first, kBlock, 0, first + count, size_, queries_, stride_);
        for (std::int64_t t = 0; t <= kBlock; ++t) {
            if (t < kBlock)
                block.weight[t] = t >= count                    ? 0.0f
                                  : head_.write.data == nullptr ? 1.0f
                                                                : NumberAt(head_.write, head_.head, first + t);
            if (t < count)
                ReadDecay(head_, first + t, stride_, between_ + t * stride_);
            else
                Fill(between_ + t * stride_, stride_, 1.0f);
        }
        const bool chunks = head_.chunk_size > 0;
        MakeBlock(keys_, queries_, between_, chunks && !head_.reads_own_chunk ? faded_ : nullptr, stride_, block);
        if (!chunks || head_.log_decay.data == nullptr) return;
        for (std::int64_t c = 0; c < stride_; c += lanes) {
            hn::Store(hn::Mul(hn::Load(d, faded_ + c), hn::Load(d, block.decay + c)), d, faded_ + c);
        }
        for (std::int64_t t = 0; t < count; ++t) {
            const float* g = static_cast<const float*>(head_.log_decay.data) +
                             head_.head * head_.log_decay.head_stride + (first + t) * head_.log_decay.row_stride;
            for (std::int64_t c = 0; c < size_; ++c) sum_[c] += g[head_.channels ? c : 0];
        }
    }

    /// Tile n and block x of a group: what the tile holds for its keys and queries, what they write, and the tile
    /// after.
    template <int T>
    void Meet(std::int64_t n, const Block& block, std::int64_t x) {
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        HWY_ALIGN float held[T * kTileVectors * hn::MaxLanes(F32())] = {};
        HWY_ALIGN float read[T * kTileVectors * hn::MaxLanes(F32())];
        HWY_ALIGN float u[T * kTileVectors * hn::MaxLanes(F32())];
        float* tile = state_.Row(n, 0);
        const bool own = head_.chunk_size == 0 || head_.reads_own_chunk;
        if (own && head_.delta) {
            MeetTile<true>(Tokens<T>(), tile, state_.stride, size_, block.keys, block.queries, held, read);
        } else {
            if (head_.delta)
                MeetTile<false>(Tokens<T>(), tile, state_.stride, size_, block.keys, nullptr, held, nullptr);
            const Tiles& of_queries = own ? state_ : start_;
            MeetTile<false>(Tokens<T>(), of_queries.Row(n, 0), of_queries.stride, size_, block.queries, nullptr, read,
                            nullptr);
        }
        const float* value = values_ + x * kBlock * columns_ + n * width_;
        float* output = output_ + x * kBlock * columns_ + n * width_;
        for (int v = 0; v < kTileVectors; ++v) {
            const std::int64_t at = v * lanes;
            Solve(Tokens<T>(), block, own, value + at, held + at, read + at, u + at, output + at);
        }
        WriteTile(Tokens<T>(), tile, state_.stride, size_, block, u);
    }

    /// One vector's columns: what the tokens write, and read.
    template <std::size_t... T>
    HWY_INLINE void Solve(std::index_sequence<T...>, const Block& block, bool own, const float* HWY_RESTRICT value,
                          const float* HWY_RESTRICT held, const float* HWY_RESTRICT read, float* HWY_RESTRICT u,
                          float* HWY_RESTRICT output) const {
        V written[sizeof...(T)];
        (SolveToken<T>(block, own, value + static_cast<std::int64_t>(T) * columns_, held, read, u,
                       output + static_cast<std::int64_t>(T) * columns_, written),
         ...);
    }
    template <std::size_t T>
    HWY_INLINE void SolveToken(const Block& block, bool own, const float* HWY_RESTRICT value,
                               const float* HWY_RESTRICT held, const float* HWY_RESTRICT read, float* HWY_RESTRICT u,
                               float* HWY_RESTRICT output, V* HWY_RESTRICT written) const {
        const F32 d;
        const std::int64_t at = static_cast<std::int64_t>(T) * width_;
        V fresh = hn::Load(d, value), result = hn::Load(d, read + at);
        if (head_.delta)
            fresh =
                hn::Sub(fresh, AddEarlier(Tokens<T>(), block.of_keys + PairAt(T, 0), written, hn::Load(d, held + at)));
        written[T] = hn::Mul(hn::Set(d, block.weight[T]), fresh);
        if (own) result = AddEarlier(Tokens<T + 1>(), block.of_queries + PairAt(T, 0), written, result);
        hn::Store(written[T], d, u + at);
        hn::Store(result, d, output);
    }

    void EndChunk() {
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        const float kept = head_.kept[chunk_++];
        const V factor = hn::Set(d, kept);
        if (kept != 1.0f) {
            ForRows([&](std::int64_t n, std::int64_t r, std::int64_t, std::int64_t) HWY_ATTR {
                const V decay = hn::Set(d, head_.decays_dropped ? faded_[r] : 1.0f);
                float* row = state_.Row(n, r);
                const float* start = start_.Row(n, r);
                for (std::int64_t c = 0; c < width_; c += lanes) {
                    const V before = hn::Mul(decay, hn::LoadU(d, start + c));
                    const V wrote = hn::Sub(hn::LoadU(d, row + c), before);
                    hn::StoreU(hn::MulAdd(factor, wrote, before), d, row + c);
                }
            });
        }
        CopyTiles(state_, start_);
        Fill(faded_, stride_, 1.0f);
        SetZero(sum_, stride_);
        position_ = 0;
    }

    void Padding() {
        HeadTarget target = task_.output;
        const std::int64_t bytes = task_.first_column * (target.type == ElementType::float32 ? 4 : 2);
        target.data = static_cast<char*>(target.data) + bytes;
        SetZero(output_, columns_);
        for (std::int64_t i = head_.real; i < head_.length; ++i)
            WriteRows(output_, columns_, 1, task_.columns, 1.0f, target, head_.head, i);
    }

    const RecurrentTask& task_;
    const RecurrentHead& head_;
    std::int64_t size_, stride_ = 0, width_ = 0, tiles_ = 0, columns_ = 0;  // columns_: of all tiles
    std::int64_t position_ = 0, chunk_ = 0;                                 // in the open chunk; its number
    bool in_place_ = false;
    Tiles state_, start_;
    float *keys_, *queries_, *between_, *faded_, *sum_, *values_, *output_;
    Block blocks_[kGroupBlocks];
};

void RecurrentForward(const RecurrentTask& task) {
    RecurrentPass(task).Run();
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(RecurrentForward);

void recurrent_forward_task(const RecurrentTask& task) {
    HWY_DYNAMIC_DISPATCH(RecurrentForward)(task);
}

std::int64_t recurrent_scratch(std::int64_t key_size, std::int64_t columns) {
    const std::int64_t stride = pad_to_line(key_size), group = kRecurrentGroup;
    const std::int64_t padded = (columns + kMostPanel - 1) / kMostPanel * kMostPanel;
    return 2 * key_size * padded + (3 * kRecurrentBlock + 3) * stride + 2 * group * padded +
           group / kRecurrentBlock * (3 * kRecurrentBlock + 1) * stride;
}

}  // namespace headscope::kernels::cpu
#endif
