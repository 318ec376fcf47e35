// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Kinds of heads: how much of each attention matrix lies where a previous-token, duplicate-token, induction or self
// head attends, as TransformerLens' head detector counts it; and how often a head looks at the token that is copied
// next (retrieval heads, Wu et al., arXiv 2404.15574). Threads: the compute thread. Errors: headscope::Error; Stopped,
// with whole sequences in place.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/model/edits/intervention.h"
#include "core/store/ask/ask_file.h"

namespace headscope::model {
class Model;
}

namespace headscope::ask {

inline constexpr std::array<std::string_view, 4> kHeadKinds{"previous", "duplicate", "induction", "self"};

struct KindsOptions {
    bool exclude_first = false;    ///< attention to the first token does not count
    bool exclude_current = false;  ///< attention of a token to itself does not count
    /// Positions of text 0 whose copies count, and the number of tokens that the model appends; absent: no retrieval.
    std::optional<model::PositionRange> needle;
    std::int64_t generate = 0;
    model::Editor* editor = nullptr;  ///< of every run; null: none
    std::function<void()> saved;      ///< called when a sequence is in place
};

/// `count` texts: `first` where there is one, then `half` random ids below `vocabulary`, twice. The same for a seed on
/// every machine.
std::vector<std::vector<std::int32_t>> repeated_texts(std::int64_t count, std::int64_t half, std::int64_t vocabulary,
                                                      std::optional<std::int32_t> first, std::uint64_t seed);

/// Fills /kinds of `record`. Sites without an attention matrix stay NaN, and so does cross-attention. Self-attention of
/// a decoder behind an encoder is scored on the decoder's input.
void run_kinds(model::Model& model, const KindsOptions& options, store::AskRecord& record, Progress& progress,
               const Cancellation& cancellation);

}  // namespace headscope::ask
