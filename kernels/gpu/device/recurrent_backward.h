// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The backward walk over a band of pieces, last piece first. Each piece is walked forward again from its stored state,
// which leaves the decayed states in `trail`, and then backward. What a block's 16 value columns add to gradients of
// queries, keys, w and g goes to parts, which SumParts adds in order.

#include "kernels/gpu/device/recurrent.h"

namespace headscope::gpu {

struct RecurrentBackwardArgs {
    HsRecurrentBackward b;
    int begin, end;  ///< pieces of the band
};

template <int kPerLane>
struct RecurrentBackward {
    using Args = RecurrentBackwardArgs;
    using Stage = TokenStage<kPerLane>;
    using State = StateColumns<kPerLane>;
    static constexpr int kThreads = kWalkThreads, kKeys = Stage::kKeys;
    // Shared floats: tokens, errors of the piece [64][16], then sums of 8 groups: queries, keys, g [kKeys], and w.
    static constexpr int kErrors = Stage::kFloats, kSums = kErrors + HS_RECURRENT_PIECE * HS_RECURRENT_COLUMNS;
    static constexpr int kWriteSums = kSums + 3 * kWalkGroups * kKeys;
    static constexpr int kShared = 4 * (kWriteSums + kWalkGroups);
    static_assert(kShared <= 64 << 10 && 8 * kThreads <= 4 * kKeys * kWalkGroups && kSums % 2 == 0);

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsRecurrent& r = args.b.r;
        Block block(args, c);
        block.resume();
        for (int piece = args.end - 1; piece >= args.begin; --piece) {
            const int first = r.piece_begins[piece], end = least(r.piece_begins[piece + 1], r.tokens);
            if (end > first) block.walk(piece, first, end);
        }
        block.leave();
    }

private:
    class Block {
    public:
        HS_DEVICE Block(const Args& args, const Context& c)
            : b_(args.b),
              r_(args.b.r),
              c_(c),
              parts_(state_parts(args.b.r)),
              head_(c.block() / parts_),
              part_(c.block() % parts_),
              lane_(c.thread() % kWalkLanes),
              group_(c.thread() / kWalkLanes),
              own_(r_.chunk_size == 0 || r_.reads_own_chunk != 0),
              band_first_(r_.piece_begins[args.begin]),
              band_(least(r_.piece_begins[args.end], r_.tokens) - band_first_) {}

        HS_DEVICE void resume() {
            later_.clear();
#pragma unroll
            for (int n = 0; n < kPerLane; ++n) {
                const int a = lane_ + kWalkLanes * n;
#pragma unroll
                for (int k = 0; k < kWalkColumns; ++k)
                    if (a < r_.key_size) later_.at[k][n] = b_.later[column_at(k, a)];
            }
        }

        HS_DEVICE void leave() {
#pragma unroll
            for (int n = 0; n < kPerLane; ++n) {
                const int a = lane_ + kWalkLanes * n;
                if (a >= r_.key_size) continue;
#pragma unroll
                for (int k = 0; k < kWalkColumns; ++k) b_.later[column_at(k, a)] = later_.at[k][n];
            }
        }

        HS_DEVICE void walk(int piece, int first, int end) {
            const long long size = static_cast<long long>(r_.key_size) * r_.value_size;
            const float* state = r_.states + (static_cast<long long>(head_) * r_.pieces + piece) * size;
            const int chunk = r_.chunk_size > 0 ? first / r_.chunk_size * r_.chunk_size : 0;
            const float* chunk_state = state - (first - chunk) / HS_RECURRENT_PIECE * size;
            forward(state, first, end);
            if (ends_chunk(r_, end - 1)) end_chunk(chunk_state, end - 1);
            for (int last = end; last > first; last -= Stage::kTokens) {
                const int from = most(first, last - Stage::kTokens);
                Stage::load(c_, r_, &b_.gradient, head_, part_, from, last - from, !own_);
                for (int t = last - 1; t >= from; --t) token(chunk_state, first, t, t - from);
            }
            if (r_.chunk_size == 0 || first != chunk) return;
            State::each(c_, r_, part_, [&](int k, int n, int a, int) {
                float& start = b_.start[column_at(k, a)];
                later_.at[k][n] += start;
                start = 0.0f;
                b_.carried[group_at(a)] = 0.0f;
            });
        }

    private:
        HS_DEVICE long long column_at(int k, int a) const {
            const long long column =
                (static_cast<long long>(head_) * parts_ + part_) * HS_RECURRENT_COLUMNS + State::column(c_, k);
            return column * r_.key_size + a;
        }
        HS_DEVICE long long group_at(int a) const {
            return ((static_cast<long long>(head_) * parts_ + part_) * kWalkGroups + group_) * r_.key_size + a;
        }
        HS_DEVICE float& trail(int token, int k, int a) const {
            const long long at = (static_cast<long long>(head_) * parts_ + part_) * HS_RECURRENT_PIECE + token;
            return b_.trail[(at * HS_RECURRENT_COLUMNS + State::column(c_, k)) * r_.key_size + a];
        }

        /// Leaves the state at the piece's end in state_.
        HS_DEVICE void forward(const float* from, int first, int end) {
            const auto staged = c_.shared<float>(0), errors = staged + kErrors;
            state_.load(c_, r_, part_, from);
            for (int begin = first; begin < end; begin += Stage::kTokens) {
                const int count = least(Stage::kTokens, end - begin);
                Stage::load(c_, r_, nullptr, head_, part_, begin, count, false);
                for (int t = 0; t < count; ++t) {
                    state_.scale(c_, staged + Stage::kDecay + t * kKeys);
                    const int at = begin + t - first;
                    State::each(c_, r_, part_, [&](int k, int n, int a, int) { trail(at, k, a) = state_.at[k][n]; });
                    float found[kWalkColumns];
                    state_.write_token(c_, r_, t, found);
                    if (lane_ != 0) continue;
#pragma unroll
                    for (int k = 0; k < kWalkColumns; ++k)
                        errors[at * HS_RECURRENT_COLUMNS + State::column(c_, k)] = found[k];
                }
            }
        }

        HS_DEVICE void end_chunk(const float* chunk_state, int token) {
            const float kept = kept_of_chunk(r_, head_, token);
            double product = 0.0;
            State::each(c_, r_, part_, [&](int k, int n, int a, int x) {
                const float shrunk = r_.decays_dropped != 0 ? since_chunk_start(c_, r_, head_, token, a) : 1.0f;
                const float base = shrunk * chunk_state[static_cast<long long>(a) * r_.value_size + x];
                float& later = later_.at[k][n];
                product += static_cast<double>(state_.at[k][n] - base) * static_cast<double>(later);
                b_.start[column_at(k, a)] += (1.0f - kept) * shrunk * later;
                if (r_.decays_dropped != 0) b_.carried[group_at(a)] += (1.0f - kept) * base * later;
                later *= kept;
            });
            if (b_.kept_parts == nullptr || (kept == 0.0f && b_.dropped_too == 0)) return;
            product = sum_of_block<kThreads>(c_, c_.shared<double>(4 * kSums), product);
            if (c_.thread() == 0)
                b_.kept_parts[(static_cast<long long>(head_) * parts_ + part_) * r_.chunks + token / r_.chunk_size] =
                    static_cast<float>(product);
        }

        /// Token `at` of the piece from `first`, at place t of the stage.
        HS_DEVICE void token(const float* chunk_state, int first, int at, int t) {
            const auto staged = c_.shared<float>(0);
            const auto key = staged + Stage::kKey + t * kKeys, query = staged + Stage::kQuery + t * kKeys;
            const float w = staged[Stage::kWrite + t];
            float error[kWalkColumns], outer[kWalkColumns];
            State decayed;
            decayed.clear();
            State::each(c_, r_, part_, [&](int k, int n, int a, int) { decayed.at[k][n] = trail(at - first, k, a); });
#pragma unroll
            for (int k = 0; k < kWalkColumns; ++k) {
                error[k] = staged[kErrors + (at - first) * HS_RECURRENT_COLUMNS + State::column(c_, k)];
                outer[k] = r_.scale * staged[Stage::kOuter + t * HS_RECURRENT_COLUMNS + State::column(c_, k)];
            }
            read(chunk_state, t, key, query, w, decayed, error, outer);
            float of_write[kWalkColumns];
            later_.dot(c_, key, of_write);
            float write_slope = 0.0f, shared[kWalkColumns];
#pragma unroll
            for (int k = 0; k < kWalkColumns; ++k) {
                write_slope += of_write[k] * error[k];
                shared[k] = w * of_write[k];
            }
            write_value(at, shared);
#pragma unroll
            for (int n = 0; n < kPerLane; ++n) {
                const int a = lane_ + kWalkLanes * n;
                const float number = key[a], decay = staged[Stage::kDecay + t * kKeys + a];
                float of_key = 0.0f, of_decay = 0.0f;
                if (b_.carried != nullptr && a < r_.key_size) of_decay = b_.carried[group_at(a)];
#pragma unroll
                for (int k = 0; k < kWalkColumns; ++k) {
                    float& later = later_.at[k][n];
                    of_key += later * w * error[k];
                    if (r_.delta != 0) {
                        of_key -= decayed.at[k][n] * shared[k];
                        later -= number * shared[k];
                    }
                    of_decay += later * decayed.at[k][n];
                    later *= decay;
                }
                set_sum(1, a, of_key);
                set_sum(2, a, of_decay);
            }
            reduce(at, write_slope);
        }

        /// The read of a token: its query's gradient, and what it adds to that of the state.
        HS_DEVICE void read(const float* chunk_state, int t, Shared<float> key, Shared<float> query, float w,
                            const State& decayed, const float (&error)[kWalkColumns],
                            const float (&outer)[kWalkColumns]) {
            const auto staged = c_.shared<float>(0);
#pragma unroll
            for (int n = 0; n < kPerLane; ++n) {
                const int a = lane_ + kWalkLanes * n;
                const float number = query[a], written = key[a];
                float sum = 0.0f;
                if (own_) {
#pragma unroll
                    for (int k = 0; k < kWalkColumns; ++k) {
                        sum += outer[k] * (decayed.at[k][n] + written * (w * error[k]));
                        later_.at[k][n] += outer[k] * number;
                    }
                } else if (a < r_.key_size) {
                    const float shrunk = staged[Stage::kSince + t * kKeys + a];
#pragma unroll
                    for (int k = 0; k < kWalkColumns; ++k) {
                        const int x = part_ * HS_RECURRENT_COLUMNS + State::column(c_, k);
                        if (x >= r_.value_size) continue;
                        sum += outer[k] * shrunk * chunk_state[static_cast<long long>(a) * r_.value_size + x];
                        b_.start[column_at(k, a)] += outer[k] * shrunk * number;
                    }
                    b_.carried[group_at(a)] += sum * number;
                }
                set_sum(0, a, sum);
            }
        }

        HS_DEVICE void write_value(int at, const float (&values)[kWalkColumns]) const {
            if (lane_ != 0 || b_.value.data == nullptr) return;
#pragma unroll
            for (int k = 0; k < kWalkColumns; ++k) {
                const int x = part_ * HS_RECURRENT_COLUMNS + State::column(c_, k);
                if (x < r_.value_size) store(b_.value, head_, at, x, values[k]);
            }
        }

        /// This group's part of the gradient of queries (0), keys (1) or g (2).
        HS_DEVICE void set_sum(int which, int a, float x) const {
            c_.shared<float>(4 * kSums)[(which * kWalkGroups + group_) * kKeys + a] = x;
        }

        /// Adds the 8 groups in order.
        HS_DEVICE void reduce(int at, float write_slope) const {
            const auto sums = c_.shared<float>(4 * kSums), write_sums = c_.shared<float>(4 * kWriteSums);
            if (lane_ == 0) write_sums[group_] = write_slope;
            c_.sync();
            const long long row = (static_cast<long long>(head_) * parts_ + part_) * band_ + (at - band_first_);
            for (int x = c_.thread(); x < 3 * kKeys; x += kThreads) {
                const int which = x / kKeys, a = x % kKeys;
                float* to = which == 0 ? b_.query_parts : which == 1 ? b_.key_parts : b_.decay_parts;
                if (to == nullptr || a >= r_.key_size) continue;
                float sum = 0.0f;
                for (int g = 0; g < kWalkGroups; ++g) sum += sums[(which * kWalkGroups + g) * kKeys + a];
                to[row * r_.key_size + a] = sum;
            }
            if (c_.thread() == kThreads - 1 && b_.write_parts != nullptr) {
                float sum = 0.0f;
                for (int g = 0; g < kWalkGroups; ++g) sum += write_sums[g];
                b_.write_parts[row] = sum;
            }
            c_.sync();
        }

        const HsRecurrentBackward& b_;
        const HsRecurrent& r_;
        const Context& c_;
        int parts_, head_, part_, lane_, group_;
        bool own_;
        int band_first_, band_;
        State state_, later_;  ///< the state, and the gradient of the state behind the token
    };
};

}  // namespace headscope::gpu
