// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/data/objectives/kind.h"

namespace headscope::data {

/// Encoder-decoders: the target of each source.
inline constexpr ObjectiveKind kTranslation{.name = "translation",
                                            .data = ObjectiveData::items,
                                            .translates = true,
                                            .columns = "\"source\" and \"target\"",
                                            .loss = [](const ObjectiveSettings&) -> LossWords {
                                                return {"loss of translation", "nats a token"};
                                            },
                                            .has_accuracy = [](const ObjectiveSettings&) { return true; }};

}  // namespace headscope::data
