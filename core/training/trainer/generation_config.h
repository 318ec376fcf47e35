// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// generation_config.json of a snapshot. For core/training only.

#include <nlohmann/json_fwd.hpp>

#include "core/training/trainer/trainer_session.h"

namespace headscope::training {

/// The keys that the model's checkpoint came with, while its tokenizer is used, and the tokens that begin and end a
/// text. Sets these in `config`, the snapshot's config.json, too.
nlohmann::json generation_config(const Session& session, nlohmann::json& config);

}  // namespace headscope::training
