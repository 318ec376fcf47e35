// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// From a checkpoint's config.json to what is computed: which family, which configuration, which names of tensors.

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "core/model/load/recipe.h"

namespace headscope::model {

/// Everything that is known before a tensor's shape is looked at.
struct Blueprint {
    ModelConfig config;
    TensorNames names;                         ///< of an encoder-decoder: the decoder's and the head's
    std::optional<TensorNames> encoder_names;  ///< there for encoder-decoders only
    std::vector<std::string> notes;            ///< choices, for LoadReport::notes
};

/// Throws what the family's recipe throws; unsupported for a family that is not known.
Blueprint make_blueprint(const checkpoint::Checkpoint& file);
/// For a configuration without a file, or with one that has been changed since.
Blueprint make_blueprint(const nlohmann::json& config, const checkpoint::Checkpoint* file);

/// "stored" computes in what the file mostly is; half precision and mixtures go to float32.
checkpoint::LoadAs choose_precision(const checkpoint::Checkpoint& file, checkpoint::LoadAs asked);

}  // namespace headscope::model
