// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/indices.h"
#include "core/model/switched_off.h"

namespace headscope::mixers {

/// `output` [B, Lq, H * dv], `heads` side by side, of one site: a copy in which those of `switched` that are this
/// site's are replaced, or the same tensor when there are none. `query_length` [B], empty: all Lq.
at::Tensor without_heads(const at::Tensor& output, std::int64_t heads, SiteIndex site,
                         std::span<const model::SwitchedOff> switched, const std::vector<std::int64_t>& query_length);

}  // namespace headscope::mixers
