// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Announcements of a layer with two branches (probe.h), by site.

#include <cstdint>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/indices.h"
#include "core/base/site.h"

namespace headscope::model {

/// The site of a layer's branch, "softmax" or "linear". Throws Error (internal) where there is none.
std::int64_t branch_site(const std::vector<Site>& sites, LayerIndex layer, std::string_view branch);

/// Share of softmax chunks among those with a type (-1: none), from "token_types" [B, heads, chunks]: [B, heads]
/// float64, contiguous.
at::Tensor softmax_fraction(const at::Tensor& types);

}  // namespace headscope::model
