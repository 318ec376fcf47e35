// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/shared/without_heads.h"

#include <ATen/TensorOperators.h>

namespace headscope::mixers {

using model::SwitchedOff;

at::Tensor without_heads(const at::Tensor& output, std::int64_t heads, SiteIndex site,
                         std::span<const SwitchedOff> switched, const std::vector<std::int64_t>& query_length) {
    at::Tensor changed;
    const std::int64_t size = output.size(2) / heads;
    for (const SwitchedOff& off : switched) {
        if (off.site != site.value) continue;
        if (!changed.defined()) changed = output.clone();
        const at::Tensor head = changed.narrow(2, off.head * size, size);
        if (off.how == SwitchedOff::How::zero) {
            head.zero_();
            continue;
        }
        for (std::int64_t b = 0; b < head.size(0); ++b) {
            const std::int64_t real = query_length.empty() ? head.size(1) : query_length[static_cast<std::size_t>(b)];
            const at::Tensor rows = head.select(0, b);
            rows.copy_(rows.narrow(0, 0, real).to(at::kDouble).mean(0, true));
        }
    }
    return changed.defined() ? changed : output;
}

}  // namespace headscope::mixers
