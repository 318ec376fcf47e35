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

// Those of which there are others with something more: GLM, Cohere, Mistral, Granite, and Qwen's experts, which
// `experts`, `per_token` and `size` are of where the file does not say.
ModelConfig read_glm(const ConfigReader& reader);
TensorNames glm_names(const ModelConfig& config);
ModelConfig read_cohere(const ConfigReader& reader, double default_theta);
TensorNames cohere_names(const ModelConfig& config);
ModelConfig read_mistral(const ConfigReader& reader);
ModelConfig read_granite(const ConfigReader& reader);
void read_qwen_experts(ModelConfig& config, const ConfigReader& reader, const std::string& key, std::int64_t experts,
                       std::int64_t per_token, std::int64_t size);
void name_qwen_experts(TensorNames& names);

// BERT's.
ModelConfig read_bert(const ConfigReader& reader);
TensorNames bert_names(const ModelConfig& config);

}  // namespace headscope::model
