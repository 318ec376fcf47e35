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
extern const Family kRoberta;
extern const Family kDistilbert;
extern const Family kAlbert;
extern const Family kModernBert;
extern const Family kOpt;
extern const Family kBloom;
extern const Family kGptNeox;
extern const Family kMistral;
extern const Family kQwen3;
extern const Family kGemma2;
extern const Family kPhi;
extern const Family kGptj;
extern const Family kOlmo2;
extern const Family kGptOss;
extern const Family kT5;
extern const Family kBart;

// Llama's recipe, which its relatives start from.
ModelConfig read_llama(const ConfigReader& reader, std::int64_t default_positions, const SizeDefaults& sizes = {},
                       const RopeDefaults& rope = {});
TensorNames llama_names(const ModelConfig& config);

// BERT's.
ModelConfig read_bert(const ConfigReader& reader);
TensorNames bert_names(const ModelConfig& config);

}  // namespace headscope::model
