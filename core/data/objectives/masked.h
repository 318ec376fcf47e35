// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/data/objectives/kind.h"

namespace headscope::data {

/// Encoders: the masked tokens (BERT).
inline constexpr ObjectiveKind kMasked{.name = "masked",
                                       .data = ObjectiveData::corrupted,
                                       .masks = true,
                                       .head = "masked_language",
                                       .loss = [](const ObjectiveSettings&) -> LossWords {
                                           return {"loss of masked tokens", "nats a token"};
                                       },
                                       .has_accuracy = [](const ObjectiveSettings&) { return true; }};

}  // namespace headscope::data
