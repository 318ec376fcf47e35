// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Types of NAtS-L's chunks: softmax or linear attention, one a chunk and linear head. Source: NAtS-L, section 3.

#include <cstdint>
#include <optional>
#include <vector>

#include "core/store/analysis/analysis_file.h"

namespace headscope::figures {

/// Texts that the figure token-types draws beside each other at most.
inline constexpr std::int64_t kMostTypedTexts = 24;

/// The head whose types a head's keys have: a head of a linear branch itself, softmax heads the linear head of their
/// group. Empty: the head's layer has no types.
struct TypedHead {
    std::int64_t site = 0, head = 0;
    bool operator==(const TypedHead&) const = default;
};
std::optional<TypedHead> typed_head(const store::AnalysisHeader& header, std::int64_t site, std::int64_t head);

/// The sites at which the file has types, in its order.
std::vector<std::int64_t> typed_sites(const store::AnalysisHeader& header);

/// Type of the chunk of each of the first `tokens` tokens, from `types` [H, chunks]: 0 softmax, 1 linear,
/// -1 none.
std::vector<std::int32_t> types_of_tokens(const store::Values& types, std::int64_t head, std::int64_t chunk,
                                          std::int64_t tokens);

}  // namespace headscope::figures
