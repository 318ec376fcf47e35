// SPDX-License-Identifier: GPL-3.0-or-later
// The plugin's entry `recurrent_backward`: bands of pieces from the end, each followed by the sums over its parts.
#include "kernels/gpu/device/recurrent_backward.h"

#include <algorithm>

#include "kernels/gpu/device/entries.h"
#include "kernels/gpu/device/parts.h"

namespace headscope::gpu {
namespace {

/// Gradients of `rows` tokens from `first`, from `count` parts; without parts zeros.
void sum_band(Launcher& launcher, const HsRecurrentBackward& b, int first, int rows, int count) {
    const HsRecurrent& r = b.r;
    const int group = r.heads / r.key_heads, keys = r.key_size;
    const bool sums = r.decay == HS_DECAY_HEAD && count > 0;
    sum_parts(launcher, {b.query_parts, r.heads, group, count, rows, keys, 0, b.query, first});
    sum_parts(launcher, {b.key_parts, r.heads, group, count, rows, keys, 0, b.key, first});
    sum_parts(launcher, {b.write_parts, r.heads, 1, count, rows, 1, 0, b.write, first});
    sum_parts(launcher,
              {b.decay_parts, r.heads, 1, count, rows, sums ? keys : decays_of(r), sums ? 1 : 0, b.log_decay, first});
    if (count == 0) sum_parts(launcher, {nullptr, r.heads, 1, 0, rows, r.value_size, 0, b.value, first});
}

}  // namespace

void recurrent_backward_entry(const HsRecurrentBackward* backward, const HsCall* call, HsOutcome* outcome) {
    Launcher launcher(*call, *outcome);
    const HsRecurrentBackward& b = *backward;
    const HsRecurrent& r = b.r;
    if (r.key_size > HS_RECURRENT_KEYS) return launcher.refuse("keys of more than 256 numbers");
    const int parts = state_parts(r);
    if (r.chunk_size > 0 && r.decay != HS_DECAY_NONE) {
        const std::int64_t sums = static_cast<std::int64_t>(r.heads) * decays_of(r);
        launcher.run<ChunkSums>((sums + ChunkSums::kThreads - 1) / ChunkSums::kThreads, {r, nullptr});
    }
    if (r.tokens < r.length) sum_band(launcher, b, r.tokens, r.length - r.tokens, 0);
    const std::int64_t blocks = static_cast<std::int64_t>(r.heads) * parts;
    for (int end = r.pieces; end > 0; end -= b.band_pieces) {
        const RecurrentBackwardArgs args{b, std::max(0, end - b.band_pieces), end};
        const int first = b.host_begins[args.begin], rows = std::min(b.host_begins[end], r.tokens) - first;
        if (rows <= 0) continue;
        if (r.key_size <= 64)
            launcher.run<RecurrentBackward<4>>(blocks, args);
        else if (r.key_size <= 128)
            launcher.run<RecurrentBackward<8>>(blocks, args);
        else
            launcher.run<RecurrentBackward<16>>(blocks, args);
        sum_band(launcher, b, first, rows, parts);
    }
    if (b.kept != nullptr) {
        const HsTarget to{b.kept, HS_FLOAT32, r.chunks, r.chunks};
        sum_parts(launcher, {b.kept_parts, r.heads, 1, parts, 1, r.chunks, 0, to, 0});
    }
}

}  // namespace headscope::gpu
