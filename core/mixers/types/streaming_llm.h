// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

/// StreamingLLM (Xiao et al., arXiv 2309.17453): a query i sees the `first` keys of the text and those with
/// i - j < `window`. `positions` text: rotary positions are those of the text; cache: those within a cache that holds
/// what is seen and nothing else, so that no distance is above first + window - 1. What it costs depends on the window:
/// no row of the papers' letters.
inline const MixerType kStreamingLlm{.name = "streaming_llm",
                                     .summary = "softmax attention to the first tokens and a window of the last ones",
                                     .options = {{"first", std::int64_t{4}, {}, 0, 1 << 30},
                                                 {"window", std::int64_t{1020}, {}, 1, 1 << 30},
                                                 {"positions", "text", {"text", "cache"}}}};

}  // namespace headscope::mixers
