// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "core/model/recipe.h"

namespace headscope::model {

// One file each, beside this one.
#define HEADSCOPE_FAMILY(file, constant) extern const Family constant;
#include "core/model/families/list.inc"
#undef HEADSCOPE_FAMILY

// Llama's recipe, which its relatives start from.
ModelConfig read_llama(const ConfigReader& reader, std::int64_t default_positions, const SizeDefaults& sizes = {},
                       const RopeDefaults& rope = {});
/// The same without rotary positions, whose heads may be of any size.
ModelConfig read_llama_without_positions(const ConfigReader& reader, std::int64_t default_positions,
                                         const SizeDefaults& sizes = {});
TensorNames llama_names(const ModelConfig& config);
TensorNames gemma2_names(const ModelConfig& config);
TensorNames olmo2_names(const ModelConfig& config);

// BERT's.
ModelConfig read_bert(const ConfigReader& reader);
TensorNames bert_names(const ModelConfig& config);

}  // namespace headscope::model
