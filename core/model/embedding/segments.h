// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace headscope::model {

struct ModelConfig;

/// How a model with a memory of earlier segments (Transformer-XL) reads a text. What a token is at each layer depends
/// on the same tokens as if one segment were read after the other, so the text is one pass all the same: segments are
/// which keys are seen.
struct Segments {
    std::int64_t tokens = 0;   ///< of a segment; 0: the text is one
    std::int64_t memory = -1;  ///< tokens before it that are seen; -1: as the configuration says
    bool operator==(const Segments&) const = default;
};

/// Throws usage for a model without such a memory, and for one that leaves a token nothing to see.
void check_segments(const Segments& segments, const ModelConfig& config);

}  // namespace headscope::model
