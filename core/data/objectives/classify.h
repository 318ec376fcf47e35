// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/data/objectives/kind.h"

namespace headscope::data {

/// Encoders and decoders: the class of a text or of two; one class: a number.
inline constexpr ObjectiveKind kClassify{
    .name = "classify",
    .data = ObjectiveData::items,
    .columns = "\"text\" and \"label\"",
    .takes_hashes = true,
    .head = "sequence_classes",
    .head_classes = [](const ObjectiveSettings& objective) { return objective.classes; },
    .loss = [](const ObjectiveSettings& objective) -> LossWords {
        return objective.classes == 1 ? LossWords{"squared error", ""} : LossWords{"loss of classes", "nats a text"};
    },
    .has_accuracy = [](const ObjectiveSettings& objective) { return objective.classes > 1; }};

}  // namespace headscope::data
