// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The forward walk: outputs, the states at the pieces' starts, and the state after the last token.

#include "kernels/gpu/device/recurrent.h"

namespace headscope::gpu {

template <int kPerLane>
struct RecurrentForward {
    using Args = HsRecurrentForward;
    using Stage = TokenStage<kPerLane>;
    using State = StateColumns<kPerLane>;
    static constexpr int kThreads = kWalkThreads, kShared = 4 * Stage::kFloats;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsRecurrent& r = args.r;
        const int parts = state_parts(r), head = c.block() / parts, part = c.block() % parts;
        const long long size = static_cast<long long>(r.key_size) * r.value_size;
        const bool own = r.chunk_size == 0 || r.reads_own_chunk != 0;
        float* start = args.start == nullptr ? nullptr : args.start + head * size;
        State state;
        state.clear();
        if (args.now != nullptr) state.load(c, r, part, args.now + head * size);
        if (start != nullptr && r.chunk_begin == 0) state.store(c, r, part, start);
        int piece = 0;
        for (int first = 0; first < r.tokens; first += Stage::kTokens) {
            const int count = least(Stage::kTokens, r.tokens - first);
            Stage::load(c, r, nullptr, head, part, first, count, !own);
            for (int t = 0; t < count; ++t) {
                if (r.states != nullptr && first + t == r.piece_begins[piece]) {
                    state.store(c, r, part, r.states + (static_cast<long long>(head) * r.pieces + piece) * size);
                    ++piece;
                }
                token(args, c, head, part, first + t, t, start, state);
            }
        }
        for (int t = r.tokens; t < r.length; ++t) write(args, c, head, part, t, {0.0f, 0.0f});
        if (args.now != nullptr) state.store(c, r, part, args.now + head * size);
    }

private:
    struct Columns {
        float x[kWalkColumns];
    };

    static HS_DEVICE void write(const Args& args, const Context& c, int head, int part, int token,
                                const Columns& values) {
        if (c.thread() % kWalkLanes != 0) return;
#pragma unroll
        for (int k = 0; k < kWalkColumns; ++k) {
            const int x = part * HS_RECURRENT_COLUMNS + State::column(c, k);
            if (x < args.r.value_size) store(args.output, head, token, x, values.x[k]);
        }
    }

    static HS_DEVICE void token(const Args& args, const Context& c, int head, int part, int at, int t, float* start,
                                State& state) {
        const HsRecurrent& r = args.r;
        const auto staged = c.shared<float>(0);
        state.scale(c, staged + Stage::kDecay + t * Stage::kKeys);
        float errors[kWalkColumns];
        state.write_token(c, r, t, errors);
        Columns read;
        if (r.chunk_size == 0 || r.reads_own_chunk != 0) {
            state.dot(c, staged + Stage::kQuery + t * Stage::kKeys, read.x);
        } else {
            State before;
            before.load(c, r, part, start);
            before.scale(c, staged + Stage::kSince + t * Stage::kKeys);
            before.dot(c, staged + Stage::kQuery + t * Stage::kKeys, read.x);
        }
#pragma unroll
        for (int k = 0; k < kWalkColumns; ++k) read.x[k] *= r.scale;
        write(args, c, head, part, at, read);
        if (ends_chunk(r, at)) end_chunk(args, c, head, part, at, start, state);
    }

    static HS_DEVICE void end_chunk(const Args& args, const Context& c, int head, int part, int at, float* start,
                                    State& state) {
        const HsRecurrent& r = args.r;
        const float kept = kept_of_chunk(r, head, at);
        State::each(c, r, part, [&](int k, int n, int a, int x) {
            float& held = start[static_cast<long long>(a) * r.value_size + x];
            const float base = r.decays_dropped != 0 ? held * since_chunk_start(c, r, head, at, a) : held;
            if (kept != 1.0f) state.at[k][n] = base + kept * (state.at[k][n] - base);
            held = state.at[k][n];
        });
    }
};

}  // namespace headscope::gpu
