// SPDX-License-Identifier: GPL-3.0-or-later
// The plugin's entries `recurrent_forward` and `implicit`, by the size of the keys.
#include "kernels/gpu/device/recurrent_forward.h"

#include "kernels/gpu/device/entries.h"
#include "kernels/gpu/device/implicit.h"

namespace headscope::gpu {
namespace {

constexpr const char* kKeysRefused = "keys of more than 256 numbers";

void sum_chunks(Launcher& launcher, const HsRecurrent& r, float* decay_sum) {
    if (r.chunk_size == 0 || r.decay == HS_DECAY_NONE) return;
    const std::int64_t sums = static_cast<std::int64_t>(r.heads) * decays_of(r);
    launcher.run<ChunkSums>((sums + ChunkSums::kThreads - 1) / ChunkSums::kThreads, {r, decay_sum});
}

}  // namespace

void recurrent_forward_entry(const HsRecurrentForward* forward, const HsCall* call, HsOutcome* outcome) {
    Launcher launcher(*call, *outcome);
    const HsRecurrent& r = forward->r;
    sum_chunks(launcher, r, forward->decay_sum);
    const std::int64_t blocks = static_cast<std::int64_t>(r.heads) * state_parts(r);
    if (r.key_size <= 64)
        launcher.run<RecurrentForward<4>>(blocks, *forward);
    else if (r.key_size <= 128)
        launcher.run<RecurrentForward<8>>(blocks, *forward);
    else if (r.key_size <= HS_RECURRENT_KEYS)
        launcher.run<RecurrentForward<16>>(blocks, *forward);
    else
        launcher.refuse(kKeysRefused);
}

void implicit_entry(const HsImplicit* implicit, const HsCall* call, HsOutcome* outcome) {
    Launcher launcher(*call, *outcome);
    const HsRecurrent& r = implicit->r;
    constexpr int kRows = Implicit<4>::kBlockRows;
    const std::int64_t blocks = static_cast<std::int64_t>(r.heads) * ((r.tokens + kRows - 1) / kRows);
    if (r.key_size <= 64)
        launcher.run<Implicit<4>>(blocks, *implicit);
    else if (r.key_size <= 128)
        launcher.run<Implicit<8>>(blocks, *implicit);
    else if (r.key_size <= HS_RECURRENT_KEYS)
        launcher.run<Implicit<16>>(blocks, *implicit);
    else
        launcher.refuse(kKeysRefused);
}

}  // namespace headscope::gpu
