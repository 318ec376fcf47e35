// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Recurrent attention walks the tokens in float32. A block owns 16 value columns of a head, each half warp two of them;
// lane l holds the numbers l, l + 16, .. of the key, so that a product with a key is a sum over 16 lanes. Tokens come
// through shared memory, some at a time.

#include "kernels/gpu/device/reduce.h"
#include "kernels/gpu/device/weight.h"

namespace headscope::gpu {

inline constexpr int kWalkThreads = 128, kWalkLanes = 16, kWalkGroups = kWalkThreads / kWalkLanes, kWalkColumns = 2;
static_assert(kWalkGroups == HS_RECURRENT_GROUPS && kWalkGroups * kWalkColumns == HS_RECURRENT_COLUMNS);

/// e^g.
HS_DEVICE float decay_by(const Context& c, float g) {
    return power(c, g * static_cast<float>(kLog2E));
}

HS_BOTH int decays_of(const HsRecurrent& r) {
    return r.decay == HS_DECAY_CHANNEL ? r.key_size : 1;
}
HS_BOTH int state_parts(const HsRecurrent& r) {
    return (r.value_size + HS_RECURRENT_COLUMNS - 1) / HS_RECURRENT_COLUMNS;
}
HS_DEVICE int key_head_of(const HsRecurrent& r, int head) {
    return head / (r.heads / r.key_heads);
}
HS_DEVICE bool ends_chunk(const HsRecurrent& r, int token) {
    return r.chunk_size > 0 && (r.chunk_begin + token + 1) % r.chunk_size == 0;
}
HS_DEVICE float kept_of_chunk(const HsRecurrent& r, int head, int token) {
    return r.kept[static_cast<long long>(head) * r.chunks + (r.chunk_begin + token) / r.chunk_size];
}
/// e^ the sum of g from the chunk's start up to `token`, of number a of the key.
HS_DEVICE float since_chunk_start(const Context& c, const HsRecurrent& r, int head, int token, int a) {
    if (r.decay == HS_DECAY_NONE) return 1.0f;
    const int decays = decays_of(r);
    return decay_by(c, r.sums[(static_cast<long long>(head) * r.length + token) * decays + (decays == 1 ? 0 : a)]);
}

/// Sums of g from each chunk's start, a thread a head and number.
struct ChunkSums {
    struct Args {
        HsRecurrent r;
        float* decay_sum;
    };
    static constexpr int kThreads = 64, kShared = 16;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsRecurrent& r = args.r;
        const int decays = decays_of(r);
        const long long index = static_cast<long long>(c.block()) * kThreads + c.thread();
        if (index >= static_cast<long long>(r.heads) * decays) return;
        const int head = static_cast<int>(index / decays), a = static_cast<int>(index % decays);
        double sum = r.chunk_begin > 0 && args.decay_sum != nullptr ? static_cast<double>(args.decay_sum[index]) : 0.0;
        for (int t = 0; t < r.tokens; ++t) {
            sum += static_cast<double>(element(r.log_decay, head, t, a));
            r.sums[(static_cast<long long>(head) * r.length + t) * decays + a] = static_cast<float>(sum);
            if (ends_chunk(r, t)) sum = 0.0;
        }
        if (args.decay_sum != nullptr) args.decay_sum[index] = static_cast<float>(sum);
    }
};

/// Tokens in shared memory. Numbers of keys and queries beyond their size are 0.
template <int kPerLane>
struct TokenStage {
    static constexpr int kKeys = kWalkLanes * kPerLane, kTokens = kPerLane > 8 ? 8 : 16, kMatrix = kTokens * kKeys;
    static constexpr int kKey = 0, kQuery = kMatrix, kDecay = 2 * kMatrix, kSince = 3 * kMatrix, kWrite = 4 * kMatrix;
    static constexpr int kValue = kWrite + kTokens, kOuter = kValue + kTokens * HS_RECURRENT_COLUMNS;
    static constexpr int kFloats = kOuter + kTokens * HS_RECURRENT_COLUMNS;

    /// Loads tokens [first, first + count); begins and ends with a barrier. `outer`: null, or the output's gradient.
    static HS_DEVICE void load(const Context& c, const HsRecurrent& r, const HsMatrix* outer, int head, int part,
                               int first, int count, bool with_since) {
        const auto to = c.shared<float>(0);
        const int key_head = key_head_of(r, head);
        c.sync();
        for (int x = c.thread(); x < kMatrix; x += kWalkThreads) {
            const int t = first + x / kKeys, a = x % kKeys;
            const bool inside = x / kKeys < count && a < r.key_size;
            to[kKey + x] = inside ? element(r.key, key_head, t, a) : 0.0f;
            to[kQuery + x] = inside ? element(r.query, key_head, t, a) : 0.0f;
            to[kDecay + x] = inside && r.decay != HS_DECAY_NONE
                                 ? decay_by(c, element(r.log_decay, head, t, r.decay == HS_DECAY_HEAD ? 0 : a))
                                 : 1.0f;
            if (with_since) to[kSince + x] = inside ? since_chunk_start(c, r, head, t, a) : 1.0f;
        }
        for (int x = c.thread(); x < kTokens; x += kWalkThreads)
            to[kWrite + x] = x < count && r.write.data != nullptr ? element(r.write, head, first + x, 0) : 1.0f;
        for (int x = c.thread(); x < kTokens * HS_RECURRENT_COLUMNS; x += kWalkThreads) {
            const int t = x / HS_RECURRENT_COLUMNS, column = part * HS_RECURRENT_COLUMNS + x % HS_RECURRENT_COLUMNS;
            const bool inside = t < count && column < r.value_size;
            to[kValue + x] = inside ? element(r.value, head, first + t, column) : 0.0f;
            if (outer != nullptr) to[kOuter + x] = inside ? element(*outer, head, first + t, column) : 0.0f;
        }
        c.sync();
    }
};

/// The numbers of two columns of a state that a thread holds.
template <int kPerLane>
struct StateColumns {
    float at[kWalkColumns][kPerLane];

    /// Column of this thread within the block's 16.
    static HS_DEVICE int column(const Context& c, int k) { return c.thread() / kWalkLanes + k * kWalkGroups; }

    /// body(k, n, number of the key, value column): the numbers that exist.
    template <class Body>
    static HS_DEVICE void each(const Context& c, const HsRecurrent& r, int part, const Body& body) {
#pragma unroll
        for (int k = 0; k < kWalkColumns; ++k) {
            const int x = part * HS_RECURRENT_COLUMNS + column(c, k);
#pragma unroll
            for (int n = 0; n < kPerLane; ++n) {
                const int a = c.thread() % kWalkLanes + kWalkLanes * n;
                if (a < r.key_size && x < r.value_size) body(k, n, a, x);
            }
        }
    }

    HS_DEVICE void clear() {
#pragma unroll
        for (int k = 0; k < kWalkColumns; ++k)
#pragma unroll
            for (int n = 0; n < kPerLane; ++n) at[k][n] = 0.0f;
    }
    /// From or to [key_size, value_size].
    HS_DEVICE void load(const Context& c, const HsRecurrent& r, int part, const float* from) {
        clear();
        each(c, r, part,
             [&](int k, int n, int a, int x) { at[k][n] = from[static_cast<long long>(a) * r.value_size + x]; });
    }
    HS_DEVICE void store(const Context& c, const HsRecurrent& r, int part, float* to) const {
        each(c, r, part,
             [&](int k, int n, int a, int x) { to[static_cast<long long>(a) * r.value_size + x] = at[k][n]; });
    }

    /// Sums over the key's numbers of the products with 16 lanes' rows in shared memory.
    HS_DEVICE void dot(const Context& c, Shared<float> row, float (&sums)[kWalkColumns]) const {
        const int lane = c.thread() % kWalkLanes;
#pragma unroll
        for (int k = 0; k < kWalkColumns; ++k) {
            float sum = 0.0f;
#pragma unroll
            for (int n = 0; n < kPerLane; ++n) sum += at[k][n] * row[lane + kWalkLanes * n];
            sums[k] = sum_of_lanes(c, sum);
        }
    }

    HS_DEVICE void scale(const Context& c, Shared<float> row) {
        const int lane = c.thread() % kWalkLanes;
#pragma unroll
        for (int n = 0; n < kPerLane; ++n) {
            const float factor = row[lane + kWalkLanes * n];
#pragma unroll
            for (int k = 0; k < kWalkColumns; ++k) at[k][n] *= factor;
        }
    }

    /// Adds row x^T.
    HS_DEVICE void add(const Context& c, Shared<float> row, const float (&x)[kWalkColumns]) {
        const int lane = c.thread() % kWalkLanes;
#pragma unroll
        for (int n = 0; n < kPerLane; ++n) {
            const float factor = row[lane + kWalkLanes * n];
#pragma unroll
            for (int k = 0; k < kWalkColumns; ++k) at[k][n] += factor * x[k];
        }
    }

    /// Decays the state and writes a token to it. errors: what w is multiplied with, v - S^T k or v.
    HS_DEVICE void write_token(const Context& c, const HsRecurrent& r, int token, float (&errors)[kWalkColumns]) {
        using Stage = TokenStage<kPerLane>;
        const auto staged = c.shared<float>(0);
        const auto key = staged + Stage::kKey + token * Stage::kKeys;
        float found[kWalkColumns] = {};
        if (r.delta != 0) dot(c, key, found);
        const float w = staged[Stage::kWrite + token];
        float change[kWalkColumns];
#pragma unroll
        for (int k = 0; k < kWalkColumns; ++k) {
            errors[k] = staged[Stage::kValue + token * HS_RECURRENT_COLUMNS + column(c, k)] - found[k];
            change[k] = w * errors[k];
        }
        add(c, key, change);
    }
};

}  // namespace headscope::gpu
