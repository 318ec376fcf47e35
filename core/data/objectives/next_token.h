// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/data/objectives/kind.h"

namespace headscope::data {

/// Decoders: each token from those before it.
inline constexpr ObjectiveKind kNextToken{.name = "next_token",
                                          .data = ObjectiveData::stream,
                                          .loss = [](const ObjectiveSettings&) -> LossWords {
                                              return {"loss", "nats a token"};
                                          },
                                          .has_accuracy = [](const ObjectiveSettings&) { return false; }};

}  // namespace headscope::data
