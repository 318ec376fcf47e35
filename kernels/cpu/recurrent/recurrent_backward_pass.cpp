// SPDX-License-Identifier: GPL-3.0-or-later
// The formulas of kernels/cpu/recurrent/recurrent_backward.h for one head; layouts: grouped_products-inl.h.
#include <algorithm>
#include <utility>

#include "kernels/cpu/recurrent/recurrent_backward.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/recurrent/recurrent_backward_pass.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/recurrent/grouped_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kPiece = kRecurrentPiece, kSquare = kPiece * kPiece;
constexpr float kLeastDecay = -1e4f;  // e^ it is 0, and differences of sums stay numbers

class RecurrentBackwardPass {
public:
    explicit RecurrentBackwardPass(const RecurrentBackwardTask& task)
        : t_(task),
          keys_(pad_to_line(task.key_size)),
          values_(pad_to_line(task.columns)),
          ks_(OddLines(task.key_size)),
          vs_(OddLines(task.columns)) {
        float* at = task.scratch;
        const auto take = [&at](std::int64_t floats) { return std::exchange(at, at + pad_to_line(floats)); };
        state_ = take(keys_ * vs_);
        later_ = take(keys_ * vs_);
        query_ = take(kPiece * ks_);
        key_ = take(kPiece * ks_);
        query_gradient_ = take(kPiece * ks_);
        row_gradient_ = take(kPiece * ks_);
        column_gradient_ = take(kPiece * ks_);
        of_state_ = take(2 * kPiece * ks_);
        value_ = take(kPiece * vs_);
        outer_ = take(kPiece * vs_);
        of_write_ = take(kPiece * vs_);
        key_left_ = take(kPiece * keys_);
        left_ = take(2 * kPiece * HWY_MAX(keys_, values_));
        panel_ = take(HWY_MAX(keys_, values_) * kMostPanel);
        for (float** square :
             {&decay_, &keys_keys_, &against_, &against_columns_, &reads_, &read_slope_, &key_slope_, &slope_columns_})
            *square = take(kSquare);
        start_ = task.chunk_size > 0 ? take(keys_ * vs_) : nullptr;
    }

    void Run() {
        SetZero(later_, keys_ * vs_);
        SetZero(of_state_, 2 * kPiece * ks_);  // products with a caller's rows leave the columns behind them alone
        if (start_ != nullptr) SetZero(start_, keys_ * vs_);
        Padding();
        std::int64_t end = t_.real, piece = Pieces(end) - 1;
        while (end > 0) {
            if (t_.cancel != nullptr && t_.cancel->load(std::memory_order_relaxed)) return;
            const std::int64_t chunk = t_.chunk_size > 0 ? (end - 1) / t_.chunk_size * t_.chunk_size : 0;
            const std::int64_t first = chunk + (end - 1 - chunk) / kPiece * kPiece;
            first_ = first;
            count_ = end - first;
            rows_ = pad_to_line(count_);
            chunk_ = chunk;
            starts_chunk_ = t_.chunk_size > 0 && first == chunk;
            ends_chunk_ = t_.chunk_size > 0 && end == chunk + t_.chunk_size;
            state_here_ = t_.pieces + piece * t_.key_size * t_.value_size;
            state_of_chunk_ = state_here_ - (first - chunk) / kPiece * t_.key_size * t_.value_size;
            Piece();
            end = first;
            --piece;
        }
    }

private:
    std::int64_t Pieces(std::int64_t length) const {
        const auto up = [](std::int64_t tokens) { return (tokens + kPiece - 1) / kPiece; };
        if (t_.chunk_size == 0) return up(length);
        return length / t_.chunk_size * up(t_.chunk_size) + up(length % t_.chunk_size);
    }

    void Piece() {
        const bool own = t_.chunk_size == 0 || t_.reads_own_chunk;
        Read();
        Decays();
        // Scales the gradient of the state at the piece's end.
        const float kept = ends_chunk_ ? t_.kept[chunk_ / t_.chunk_size] : 1.0f;
        const bool flows = has_later_ && kept != 0.0f;
        const bool measures =
            has_later_ && ends_chunk_ && t_.kept_gradient != nullptr && (kept != 0.0f || t_.dropped_too);
        const Left keys = PackLeft(key_, ks_, rows_, keys_, key_left_);
        if (t_.delta) Errors(keys);
        if (own) {
            const Left queries = PackLeft(query_, ks_, rows_, keys_, left_);
            ProductWithRows(queries, key_, ks_, rows_, rows_, keys_, true, panel_, reads_, kPiece);
            ForSquare(0, [&](std::int64_t at, auto inside, V decay) HWY_ATTR {
                const V x = hn::Mul(hn::Mul(hn::Load(F32(), reads_ + at), decay), hn::Set(F32(), t_.scale));
                hn::Store(hn::IfThenElseZero(inside, x), F32(), reads_ + at);
            });
        }
        WriteSlopes(keys, own, flows ? kept : 0.0f);
        StateSlopes(own, flows || measures);
        EndOfPiece(flows, measures, kept);
        KeyGradients(own, flows, kept);
        NextState(own, flows ? kept : 0.0f);
    }

    void Read() {
        const std::int64_t after = first_ + count_;
        CopyRows(t_.query, t_.key_head, first_, rows_, 0, after, t_.key_size, query_, ks_);
        CopyRows(t_.key, t_.key_head, first_, rows_, 0, after, t_.key_size, key_, ks_);
        CopyRows(t_.value, t_.head, first_, rows_, 0, after, t_.columns, value_, vs_);
        CopyRows(t_.output_gradient, t_.head, first_, rows_, 0, after, t_.columns, outer_, vs_);
        CopyRows({state_here_, ElementType::float32, 0, t_.value_size}, 0, 0, keys_, 0, t_.key_size, t_.columns, state_,
                 vs_);
        double sum = 0.0;
        for (std::int64_t i = 0; i < kPiece; ++i) {
            write_[i] = 0.0f;
            sums_[i] = sum;
            if (i >= count_) continue;
            write_[i] = t_.write.data != nullptr ? Number(t_.write, first_ + i) : 1.0f;
            if (t_.log_decay.data != nullptr) sum += double{HWY_MAX(Number(t_.log_decay, first_ + i), kLeastDecay)};
            sums_[i] = sum;
        }
        before_ = 0.0;
        for (std::int64_t i = chunk_; t_.log_decay.data != nullptr && t_.chunk_size > 0 && i < first_; ++i)
            before_ += double{HWY_MAX(Number(t_.log_decay, i), kLeastDecay)};
    }

    float Number(const HeadMatrix& of, std::int64_t token) const {
        return static_cast<const float*>(of.data)[t_.head * of.head_stride + token * of.row_stride];
    }

    /// e^x, x <= 0.
    static void Exponentials(float* HWY_RESTRICT x, std::int64_t count) {
        const F32 d;
        const V log2e = hn::Set(d, static_cast<float>(kLog2E));
        for (std::int64_t c = 0; c < count; c += static_cast<std::int64_t>(hn::Lanes(d)))
            hn::Store(PowerOfTwo(d, hn::Mul(hn::Load(d, x + c), log2e)), d, x + c);
    }

    /// D, e^G since the piece's start and since the chunk's, and e^(G_C - G).
    void Decays() {
        for (std::int64_t i = 0; i < kPiece; ++i) {
            since_[i] = static_cast<float>(sums_[i]);
            since_chunk_[i] = static_cast<float>(sums_[i] + before_);
            until_[i] = static_cast<float>(sums_[kPiece - 1] - sums_[i]);
        }
        for (std::int64_t i = 0; i < rows_; ++i) {
            float* row = decay_ + i * kPiece;
            for (std::int64_t j = 0; j <= i; ++j) row[j] = static_cast<float>(sums_[i] - sums_[j]);
            for (std::int64_t j = i + 1; j < kPiece; ++j) row[j] = 0.0f;
        }
        Exponentials(since_, kPiece);
        Exponentials(since_chunk_, kPiece);
        Exponentials(until_, kPiece);
        if (t_.log_decay.data == nullptr) {
            for (std::int64_t n = 0; n < rows_ * kPiece; ++n) decay_[n] = 1.0f;
        } else {
            Exponentials(decay_, rows_ * kPiece);
        }
        whole_ = since_[kPiece - 1];
        whole_chunk_ = since_chunk_[kPiece - 1];
    }

    /// step(index, mask of columns j <= i - below, D) for every vector of the piece's squares.
    template <class Step>
    void ForSquare(std::int64_t below, const Step& step) const {
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        for (std::int64_t i = 0; i < rows_; ++i) {
            for (std::int64_t j = 0; j < kPiece; j += lanes) {
                const std::int64_t n = HWY_MIN(HWY_MAX(i + 1 - below - j, std::int64_t{0}), lanes);
                step(i * kPiece + j, hn::FirstN(d, static_cast<std::size_t>(n)), hn::Load(d, decay_ + i * kPiece + j));
            }
        }
    }

    /// M and -M W, then E in place of the values.
    void Errors(const Left& keys) {
        const F32 d;
        ProductWithRows(keys, key_, ks_, rows_, rows_, keys_, true, panel_, keys_keys_, kPiece);
        ForSquare(1, [&](std::int64_t at, auto inside, V decay) HWY_ATTR {
            const V x = hn::IfThenElseZero(inside, hn::Mul(hn::Load(d, keys_keys_ + at), decay));
            hn::Store(x, d, keys_keys_ + at);
            hn::Store(hn::Neg(hn::Mul(x, hn::Load(d, write_ + at % kPiece))), d, against_ + at);
        });
        PackColumns(against_, kPiece, rows_, rows_, kPiece, against_columns_);
        Product(keys, state_, vs_, rows_, values_, keys_, Steps::all, false, of_write_, vs_);
        ForRows(values_, vs_, [&](std::int64_t i, std::int64_t at) HWY_ATTR {
            const V found = hn::Load(d, of_write_ + at);
            hn::Store(hn::NegMulAdd(hn::Set(d, since_[i]), found, hn::Load(d, value_ + at)), d, value_ + at);
        });
        SolveTriangle<Solve::down>(Transposed(against_columns_, kPiece), rows_, values_, value_, vs_);
    }

    /// dU, the first part of dw, then Z, which is dV.
    void WriteSlopes(const Left& keys, bool own, float kept) {
        const F32 d;
        if (kept != 0.0f) {
            Product(keys, later_, vs_, rows_, values_, keys_, Steps::all, false, of_write_, vs_);
            ForRows(values_, vs_, [&](std::int64_t i, std::int64_t at) HWY_ATTR {
                hn::Store(hn::Mul(hn::Load(d, of_write_ + at), hn::Set(d, kept * until_[i])), d, of_write_ + at);
            });
        } else {
            SetZero(of_write_, rows_ * vs_);
        }
        if (own)
            Product(Transposed(reads_, kPiece), outer_, vs_, rows_, values_, rows_, Steps::upper, true, of_write_, vs_);
        for (std::int64_t i = 0; i < kPiece; ++i)
            write_slope_[i] = i < rows_ ? RowDot(of_write_ + i * vs_, value_ + i * vs_, values_) : 0.0f;
        ForRows(values_, vs_, [&](std::int64_t i, std::int64_t at) HWY_ATTR {
            hn::Store(hn::Mul(hn::Load(d, of_write_ + at), hn::Set(d, write_[i])), d, of_write_ + at);
        });
        if (t_.delta) SolveTriangle<Solve::up>(Transposed(against_, kPiece), rows_, values_, of_write_, vs_);
        if (t_.value_gradient.data != nullptr)
            WriteRows(of_write_, vs_, count_, t_.columns, 1.0f, t_.value_gradient, t_.head, first_);
    }

    /// dP, dM, the second part of dw; then dO S^T, Z S^T and, where dS counts, W e^(G_C - G) E dS^T.
    void StateSlopes(bool own, bool counts) {
        const F32 d;
        const Left outer = PackLeft(outer_, vs_, rows_, values_, left_);
        float* behind = left_ + rows_ * values_;
        const Left change = t_.delta ? PackLeft(of_write_, vs_, rows_, values_, behind) : outer;
        if (own) {
            ProductWithRows(outer, value_, vs_, rows_, rows_, values_, true, panel_, read_slope_, kPiece);
            ForSquare(0, [&](std::int64_t at, auto inside, V decay) HWY_ATTR {
                const V factor = hn::Mul(hn::Mul(decay, hn::Load(d, write_ + at % kPiece)), hn::Set(d, t_.scale));
                hn::Store(hn::IfThenElseZero(inside, hn::Mul(hn::Load(d, read_slope_ + at), factor)), d,
                          read_slope_ + at);
            });
        }
        if (t_.delta) {
            ProductWithRows(change, value_, vs_, rows_, rows_, values_, true, panel_, key_slope_, kPiece);
            ForSquare(1, [&](std::int64_t at, auto inside, V decay) HWY_ATTR {
                const V n = hn::IfThenElseZero(inside, hn::Load(d, key_slope_ + at));
                float* slope = write_slope_ + at % kPiece;
                hn::Store(hn::NegMulAdd(n, hn::Load(d, keys_keys_ + at), hn::Load(d, slope)), d, slope);
                const V factor = hn::Mul(decay, hn::Load(d, write_ + at % kPiece));
                hn::Store(hn::Neg(hn::Mul(n, factor)), d, key_slope_ + at);
            });
        }
        if (own && t_.delta) {
            ProductWithRows(outer, state_, vs_, 2 * rows_, keys_, values_, false, panel_, of_state_, ks_);
        } else {
            // Rows of a chunk's first state lie in the caller's memory, no more of them and no longer than they are.
            const float* read = own ? state_here_ : state_of_chunk_;
            ProductWithRows(outer, read, t_.value_size, rows_, t_.key_size, t_.columns, false, panel_, of_state_, ks_);
            if (t_.delta)
                ProductWithRows(change, state_, vs_, rows_, keys_, values_, false, panel_, of_state_ + rows_ * ks_,
                                ks_);
        }
        if (!counts) return;
        const Left errors = PackLeft(value_, vs_, rows_, values_, left_);
        ProductWithRows(errors, later_, vs_, rows_, keys_, values_, false, panel_, column_gradient_, ks_);
        ForRows(keys_, ks_, [&](std::int64_t i, std::int64_t at) HWY_ATTR {
            const V factor = hn::Set(d, write_[i] * until_[i]);
            hn::Store(hn::Mul(hn::Load(d, column_gradient_ + at), factor), d, column_gradient_ + at);
        });
    }

    /// Finds the slope of the state's gradient at the piece's end, and that of the chunk's factor.
    void EndOfPiece(bool flows, bool measures, float kept) {
        end_slope_ = 0.0;
        if (flows || measures) {
            double change = double{whole_} * Inner(state_, vs_);
            for (std::int64_t j = 0; j < count_; ++j)
                change += double{RowDot(key_ + j * ks_, column_gradient_ + j * ks_, keys_)};
            if (flows) end_slope_ = double{kept} * change;
            if (measures) t_.kept_gradient[chunk_ / t_.chunk_size] = static_cast<float>(change - BaseSlope());
        }
        if (!has_later_ || kept == 1.0f) return;
        if (t_.decays_dropped) chunk_slope_ += (1.0 - double{kept}) * BaseSlope();
        AddTo(start_, later_, (1.0f - kept) * (t_.decays_dropped ? whole_chunk_ : 1.0f));
    }

    /// <the state that the chunk's end falls back to, dS>
    double BaseSlope() const {
        const double decay = t_.decays_dropped ? double{whole_chunk_} : 1.0;
        return decay * (starts_chunk_ ? Inner(state_, vs_) : Inner(state_of_chunk_, t_.value_size));
    }

    /// The inner product of a state and dS.
    double Inner(const float* state, std::int64_t stride) const {
        double sum = 0.0;
        for (std::int64_t c = 0; c < t_.key_size; ++c)
            sum += double{RowDot(state + c * stride, later_ + c * vs_, t_.columns)};
        return sum;
    }

    void KeyGradients(bool own, bool flows, float kept) {
        const F32 d;
        const float* since = own ? since_ : since_chunk_;
        ForRows(keys_, ks_, [&](std::int64_t i, std::int64_t at) HWY_ATTR {
            const V read = hn::Mul(hn::Load(d, of_state_ + at), hn::Set(d, t_.scale * since[i]));
            hn::Store(read, d, query_gradient_ + at);
            const V held = flows ? hn::Mul(hn::Load(d, column_gradient_ + at), hn::Set(d, kept)) : hn::Zero(d);
            hn::Store(held, d, column_gradient_ + at);
            V row = hn::Zero(d);
            if (t_.delta) row = hn::Mul(hn::Load(d, of_state_ + rows_ * ks_ + at), hn::Set(d, -since_[i]));
            hn::Store(row, d, row_gradient_ + at);
        });
        if (own) {
            PackColumns(read_slope_, kPiece, rows_, rows_, kPiece, slope_columns_);
            Product(Transposed(slope_columns_, kPiece), key_, ks_, rows_, keys_, rows_, Steps::lower, true,
                    query_gradient_, ks_);
            Product(Transposed(read_slope_, kPiece), query_, ks_, rows_, keys_, rows_, Steps::upper, true,
                    column_gradient_, ks_);
        }
        if (t_.delta) {
            PackColumns(key_slope_, kPiece, rows_, rows_, kPiece, slope_columns_);
            Product(Transposed(slope_columns_, kPiece), key_, ks_, rows_, keys_, rows_, Steps::lower, true,
                    row_gradient_, ks_);
            Product(Transposed(key_slope_, kPiece), key_, ks_, rows_, keys_, rows_, Steps::upper, true,
                    column_gradient_, ks_);
        }
        DecayGradients(own);
        AddTo(column_gradient_, row_gradient_, 1.0f, rows_ * ks_);
        if (t_.query_gradient.data != nullptr)
            WriteRows(query_gradient_, ks_, count_, t_.key_size, 1.0f, t_.query_gradient, 0, first_);
        if (t_.key_gradient.data != nullptr)
            WriteRows(column_gradient_, ks_, count_, t_.key_size, 1.0f, t_.key_gradient, 0, first_);
        if (t_.write_gradient != nullptr) std::copy_n(write_slope_, count_, t_.write_gradient + first_);
    }

    /// Sums over all later tokens of the piece, and over those of the chunk of what counts from the chunk's start.
    void DecayGradients(bool own) {
        if (t_.decay_gradient == nullptr) return;
        double later = end_slope_;
        for (std::int64_t i = count_; i-- > 0;) {
            const std::int64_t at = i * ks_;
            (own ? later : chunk_slope_) += double{RowDot(query_ + at, query_gradient_ + at, keys_)};
            later += double{RowDot(key_ + at, row_gradient_ + at, keys_)};
            later -= double{RowDot(key_ + at, column_gradient_ + at, keys_)};
            t_.decay_gradient[first_ + i] = static_cast<float>(later + chunk_slope_);
        }
    }

    void NextState(bool own, float kept) {
        const F32 d;
        has_later_ = true;
        if (first_ == 0) return;
        const float* since = own ? since_ : since_chunk_;
        ForRows(keys_, ks_, [&](std::int64_t i, std::int64_t at) HWY_ATTR {
            hn::Store(hn::Mul(hn::Load(d, query_ + at), hn::Set(d, t_.scale * since[i])), d, query_ + at);
            hn::Store(hn::Mul(hn::Load(d, key_ + at), hn::Set(d, -since_[i])), d, key_ + at);
        });
        const V held = hn::Set(d, kept * whole_);
        for (std::int64_t n = 0; n < keys_ * vs_; n += static_cast<std::int64_t>(hn::Lanes(d)))
            hn::Store(hn::Mul(hn::Load(d, later_ + n), held), d, later_ + n);
        Product(Transposed(query_, ks_), outer_, vs_, keys_, values_, rows_, Steps::all, true, own ? later_ : start_,
                vs_);
        if (t_.delta)
            Product(Transposed(key_, ks_), of_write_, vs_, keys_, values_, rows_, Steps::all, true, later_, vs_);
        if (!starts_chunk_) return;
        AddTo(later_, start_, 1.0f);
        SetZero(start_, keys_ * vs_);
        chunk_slope_ = 0.0;
    }

    /// step(row, its element) for every vector of the piece's rows.
    template <class Step>
    void ForRows(std::int64_t columns, std::int64_t stride, const Step& step) const {
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(F32()));
        for (std::int64_t i = 0; i < rows_; ++i) {
            for (std::int64_t c = 0; c < columns; c += lanes) step(i, i * stride + c);
        }
    }

    void AddTo(float* HWY_RESTRICT to, const float* HWY_RESTRICT from, float factor) const {
        AddTo(to, from, factor, keys_ * vs_);
    }
    static void AddTo(float* HWY_RESTRICT to, const float* HWY_RESTRICT from, float factor, std::int64_t count) {
        const F32 d;
        const V by = hn::Set(d, factor);
        for (std::int64_t n = 0; n < count; n += static_cast<std::int64_t>(hn::Lanes(d)))
            hn::Store(hn::MulAdd(by, hn::Load(d, from + n), hn::Load(d, to + n)), d, to + n);
    }

    /// Dot product of rows of any length and alignment.
    static float RowDot(const float* a, const float* b, std::int64_t size) {
        const F32 d;
        V sum = hn::Zero(d);
        ForVectors(d, size, [&](std::int64_t c, const auto& load, const auto&) HWY_ATTR {
            sum = hn::MulAdd(load(a + c), load(b + c), sum);
        });
        return Sum(d, sum);
    }

    /// Zeros the gradients of padding tokens and of chunks without an end.
    void Padding() {
        SetZero(of_state_, keys_);
        SetZero(of_write_, values_);
        for (std::int64_t i = t_.real; i < t_.length; ++i) {
            if (t_.query_gradient.data != nullptr)
                WriteRows(of_state_, ks_, 1, t_.key_size, 1.0f, t_.query_gradient, 0, i);
            if (t_.key_gradient.data != nullptr) WriteRows(of_state_, ks_, 1, t_.key_size, 1.0f, t_.key_gradient, 0, i);
            if (t_.value_gradient.data != nullptr)
                WriteRows(of_write_, vs_, 1, t_.columns, 1.0f, t_.value_gradient, t_.head, i);
            if (t_.write_gradient != nullptr) t_.write_gradient[i] = 0.0f;
            if (t_.decay_gradient != nullptr) t_.decay_gradient[i] = 0.0f;
        }
        const std::int64_t chunks = t_.chunk_size > 0 ? (t_.length + t_.chunk_size - 1) / t_.chunk_size : 0;
        if (t_.kept_gradient != nullptr) SetZero(t_.kept_gradient, chunks);
    }

    const RecurrentBackwardTask& t_;
    std::int64_t keys_, values_, ks_, vs_;  // sizes in whole lines, and how far rows are apart
    float *state_, *later_, *start_;        // S, dS, and what the chunk's first state gets past its tokens: [dk, dv]
    float *query_, *key_, *query_gradient_, *row_gradient_, *column_gradient_;  // [tokens, dk]
    float* of_state_;                                                           // dO S^T, then Z S^T
    float *value_, *outer_, *of_write_;                                         // E, dO, dU and then Z: [tokens, dv]
    float *key_left_, *left_, *panel_;
    float *decay_, *keys_keys_, *against_, *against_columns_, *reads_, *read_slope_, *key_slope_, *slope_columns_;
    // The piece's own:
    std::int64_t first_ = 0, count_ = 0, rows_ = 0, chunk_ = 0;
    bool starts_chunk_ = false, ends_chunk_ = false, has_later_ = false;
    const float *state_here_ = nullptr, *state_of_chunk_ = nullptr;
    double sums_[kPiece], before_ = 0.0, end_slope_ = 0.0, chunk_slope_ = 0.0;
    float whole_ = 1.0f, whole_chunk_ = 1.0f;  // e^ the sum of g over the piece, and over the chunk up to its end
    HWY_ALIGN float write_[kPiece], write_slope_[kPiece], since_[kPiece], since_chunk_[kPiece], until_[kPiece];
};

void RecurrentBackward(const RecurrentBackwardTask& task) {
    RecurrentBackwardPass(task).Run();
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(RecurrentBackward);

void recurrent_backward_task(const RecurrentBackwardTask& task) {
    HWY_DYNAMIC_DISPATCH(RecurrentBackward)(task);
}

std::int64_t recurrent_backward_scratch(std::int64_t key_size, std::int64_t columns, bool chunks) {
    const std::int64_t keys = pad_to_line(key_size) + 16, values = pad_to_line(columns) + 16;
    const std::int64_t most = keys > values ? keys : values;
    return (chunks ? 3 : 2) * keys * values + kRecurrentPiece * (8 * keys + 3 * values + 2 * most) + kMostPanel * most +
           8 * kRecurrentPiece * kRecurrentPiece;
}

}  // namespace headscope::kernels::cpu
#endif
