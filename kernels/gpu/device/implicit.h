// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Rows of the implicit matrix (kernels/recurrent.h, implicit_weights), walked back from the query. A half warp owns two
// rows, lane l their numbers l, l + 16, ..; after 16 keys each lane adds one weight to its sums.

#include <cmath>

#include "kernels/gpu/device/recurrent.h"

namespace headscope::gpu {

template <int kPerLane>
struct Implicit {
    using Args = HsImplicit;
    static constexpr int kThreads = kWalkThreads, kRows = 2, kBlockRows = kRows * kWalkGroups;
    static constexpr int kKeys = kWalkLanes * kPerLane, kTokens = 16, kMatrix = kTokens * kKeys;
    static constexpr int kShared = 4 * (2 * kMatrix + kTokens);

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsRecurrent& r = args.r;
        const int blocks = (r.tokens + kBlockRows - 1) / kBlockRows, head = c.block() / blocks;
        const int first = (blocks - 1 - c.block() % blocks) * kBlockRows;
        const int group = c.thread() / kWalkLanes, lane = c.thread() % kWalkLanes;
        Row rows[kRows];
#pragma unroll
        for (int k = 0; k < kRows; ++k) {
            rows[k].i = first + group + k * kWalkGroups;
#pragma unroll
            for (int n = 0; n < kPerLane; ++n) {
                const int a = lane + kWalkLanes * n;
                const bool exists = a < r.key_size && rows[k].i < r.tokens;
                rows[k].w[n] = rows[k].plain[n] = exists ? element(r.query, key_head_of(r, head), rows[k].i, a) : 0.0f;
            }
        }
        const int last = least(first + kBlockRows, r.tokens) - 1;
        for (int from = last / kTokens * kTokens; from >= 0; from -= kTokens) {
            load(args, c, head, from);
            for (int t = kTokens - 1; t >= 0; --t)
#pragma unroll
                for (int k = 0; k < kRows; ++k) pass(args, c, head, from + t, t, rows[k]);
#pragma unroll
            for (int k = 0; k < kRows; ++k) add(args, head, from + lane, rows[k]);
        }
#pragma unroll
        for (int k = 0; k < kRows; ++k) finish(args, c, head, rows[k]);
    }

private:
    struct Row {
        int i;
        float w[kPerLane], plain[kPerLane];  ///< plain: as if the keys of the chunk had only decayed it
        float weight = 0.0f;                 ///< of one of the last 16 keys
        double sum = 0.0, squares = 0.0, logarithms = 0.0;
    };

    static HS_DEVICE void load(const Args& args, const Context& c, int head, int from) {
        const HsRecurrent& r = args.r;
        const auto keys = c.shared<float>(0), decays = keys + kMatrix, writes = keys + 2 * kMatrix;
        c.sync();
        for (int x = c.thread(); x < kMatrix; x += kThreads) {
            const int t = from + x / kKeys, a = x % kKeys;
            const bool inside = t < r.tokens && a < r.key_size;
            keys[x] = inside ? element(r.key, key_head_of(r, head), t, a) : 0.0f;
            decays[x] = inside && r.decay != HS_DECAY_NONE
                            ? decay_by(c, element(r.log_decay, head, t, r.decay == HS_DECAY_HEAD ? 0 : a))
                            : 1.0f;
        }
        for (int x = c.thread(); x < kTokens; x += kThreads)
            writes[x] = r.write.data != nullptr && from + x < r.tokens ? element(r.write, head, from + x, 0) : 1.0f;
        c.sync();
    }

    /// A_ij, then the row before token j. All lanes take part in the product, whether the row sees the key or not.
    static HS_DEVICE void pass(const Args& args, const Context& c, int head, int j, int t, Row& row) {
        const HsRecurrent& r = args.r;
        const int lane = c.thread() % kWalkLanes;
        const auto keys = c.shared<float>(0) + t * kKeys, decays = keys + kMatrix;
        const auto writes = c.shared<float>(0) + 2 * kMatrix;
        float product = 0.0f;
#pragma unroll
        for (int n = 0; n < kPerLane; ++n) product += row.w[n] * keys[lane + kWalkLanes * n];
        product = sum_of_lanes(c, product);
        if (lane == t) row.weight = 0.0f;
        if (j > row.i || row.i >= r.tokens) return;
        const bool chunks = r.chunk_size > 0, own = !chunks || j / r.chunk_size == row.i / r.chunk_size;
        const bool reads = !chunks || !own || r.reads_own_chunk != 0;
        const float kept = own ? 1.0f : kept_of_chunk(r, head, j), read = writes[t] * product;
        if (lane == t && reads) row.weight = kept * r.scale * read;
        if (lane == t && j == row.i && args.direct != nullptr) row.weight += args.direct[head];
        const bool ends = chunks && j % r.chunk_size == 0;
#pragma unroll
        for (int n = 0; n < kPerLane; ++n) {
            float &w = row.w[n], &plain = row.plain[n];
            const float decay = decays[lane + kWalkLanes * n];
            if (reads && r.delta != 0) w -= read * keys[lane + kWalkLanes * n];
            w *= decay;
            if (own || r.decays_dropped != 0) plain *= decay;
            if (!ends) continue;
            if (kept != 1.0f) w = plain + kept * (w - plain);
            plain = w;
        }
    }

    /// Adds this lane's weight, of key j.
    static HS_DEVICE void add(const Args& args, int head, int j, Row& row) {
        const HsRecurrent& r = args.r;
        if (j > row.i || row.i >= r.tokens) return;
        if (args.dense != nullptr)
            args.dense[(static_cast<long long>(head) * r.length + row.i) * r.length + j] = row.weight;
        const float size = fabsf(row.weight);
        if (size == 0.0f) return;
        const double weight = static_cast<double>(size);
        row.sum += weight;
        row.squares += weight * weight;
        row.logarithms += weight * static_cast<double>(logf(size));
    }

    static HS_DEVICE void finish(const Args& args, const Context& c, int head, const Row& row) {
        double sums[3] = {row.sum, row.squares, row.logarithms};
#pragma unroll
        for (int k = 0; k < 3; ++k)
#pragma unroll
            for (int n = 1; n < kWalkLanes; n *= 2) sums[k] += c.shuffle_xor(sums[k], n);
        if (c.thread() % kWalkLanes != 0 || row.i >= args.r.tokens) return;
        double* to = args.rows + (static_cast<long long>(head) * args.r.length + row.i) * 3;
        const double sum = sums[0];
        to[0] = sum;
        to[1] = sum > 0.0 ? log(sum) - sums[2] / sum : sum;
        to[2] = sum > 0.0 ? sums[1] / (sum * sum) : sum;
    }
};

}  // namespace headscope::gpu
