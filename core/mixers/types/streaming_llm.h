// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

/// StreamingLLM (Xiao et al., arXiv 2309.17453): a query i sees the `first` keys of the text and those with
/// i - j < `window`. `positions` text: rotary positions are those of the text; cache: those within a cache that holds
/// what is seen and nothing else, so that no distance is above first + window - 1; then keys are twice as long where
/// they are read.
inline const MixerType kStreamingLlm{.name = "streaming_llm",
                                     .title = "StreamingLLM",
                                     .color = 4,
                                     .summary = "softmax attention to the first tokens and a window of the last ones",
                                     .options = {{"first", std::int64_t{4}, {}, 0, 1 << 30},
                                                 {"window", std::int64_t{1020}, {}, 1, 1 << 30},
                                                 {"positions", "text", {"text", "cache"}}},
                                     .cost = {.time = "B L q d + B L d^2",
                                              .prefill = "2 (1 + r) B L q d + 6 B L d^2",
                                              .decode = "6 B d^2 + 2 (1 + r) B q d",
                                              .cache = "4 B q d"}};

}  // namespace headscope::mixers
