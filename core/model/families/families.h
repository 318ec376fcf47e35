// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "core/model/recipe.h"

namespace headscope::model {

// One file each, beside this one. A new family is its file, its line here, and its line in families.cpp.
extern const Family kGpt2;
extern const Family kLlama;
extern const Family kQwen2;
extern const Family kBert;

// Llama's recipe, which its relatives start from.
ModelConfig read_llama(const ConfigReader& reader, std::int64_t default_positions);
TensorNames llama_names(const ModelConfig& config);

}  // namespace headscope::model
