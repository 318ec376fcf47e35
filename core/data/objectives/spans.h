// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/data/objectives/kind.h"

namespace headscope::data {

/// Encoders: the first and the last token of a question's answer in its context.
inline constexpr ObjectiveKind kSpans{.name = "spans",
                                      .data = ObjectiveData::items,
                                      .spans = true,
                                      .columns = "\"question\", \"context\" and \"answers\"",
                                      .takes_hashes = true,
                                      .head = "spans",
                                      .loss = [](const ObjectiveSettings&) -> LossWords {
                                          return {"loss of answers", "nats a window"};
                                      },
                                      .has_accuracy = [](const ObjectiveSettings&) { return true; }};

}  // namespace headscope::data
