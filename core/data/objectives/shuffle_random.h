// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/data/objectives/kind.h"

namespace headscope::data {

/// Encoders: which tokens are intact, moved or replaced.
inline constexpr ObjectiveKind kShuffleRandom{
    .name = "shuffle_random",
    .data = ObjectiveData::corrupted,
    .takes_hashes = true,
    .head = "token_classes",
    .head_classes = [](const ObjectiveSettings&) -> std::int64_t { return 3; },
    .loss = [](const ObjectiveSettings&) -> LossWords {
        return {"loss of shuffled and replaced tokens", "nats a token"};
    },
    .has_accuracy = [](const ObjectiveSettings&) { return true; }};

}  // namespace headscope::data
