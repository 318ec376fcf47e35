// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/data/objectives/classify.h"
#include "core/data/objectives/masked.h"
#include "core/data/objectives/next_token.h"
#include "core/data/objectives/shuffle_random.h"
#include "core/data/objectives/spans.h"
#include "core/data/objectives/translation.h"

namespace headscope::data {

// A line per objective; core/model/objectives has the losses.
inline constexpr const ObjectiveKind* kObjectives[] = {&kNextToken,   &kMasked,   &kShuffleRandom,
                                                       &kTranslation, &kClassify, &kSpans};

/// Error usage for an unknown name.
inline const ObjectiveKind& kind_of(const ObjectiveSettings& objective) {
    const auto* found = std::find_if(std::begin(kObjectives), std::end(kObjectives),
                                     [&](const ObjectiveKind* one) { return objective.kind == one->name; });
    if (found != std::end(kObjectives)) return **found;
    throw Error(ErrorCode::usage, "objective.kind",
                "expected next_token, masked, shuffle_random, translation, classify or spans",
                "found \"" + escaped(objective.kind, 40) + '"');
}

}  // namespace headscope::data
