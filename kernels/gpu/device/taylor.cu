// SPDX-License-Identifier: GPL-3.0-or-later
// The plugin's entry `taylor`: chunks in their order.
#include "kernels/gpu/device/taylor.h"

#include <algorithm>

#include "kernels/gpu/device/entries.h"

namespace headscope::gpu {

void taylor_entry(const HsTaylor* taylor, const HsCall* call, HsOutcome* outcome) {
    Launcher launcher(*call, *outcome);
    const HsTaylor& t = *taylor;
    const std::int64_t panels = taylor_panels(t);
    const std::int64_t all = (t.features + HS_TAYLOR_SEGMENT - 1) / HS_TAYLOR_SEGMENT;
    for (int first = 0; first < t.length; first += HS_TAYLOR_CHUNK) {
        const TaylorArgs args{t, first, std::min(HS_TAYLOR_CHUNK, t.length - first)};
        launcher.run<TaylorRead>(t.key_heads * panels * taylor_segments(t), args);
        launcher.run<TaylorFinish>(static_cast<std::int64_t>(t.heads) * args.count, args);
        launcher.run<TaylorAdd>(t.key_heads * panels * all, args);
    }
}

}  // namespace headscope::gpu
