// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The architectures that are read, one function each: from a builder with keys and stored tensors to a whole
// configuration and all logical tensors. Names and shapes are those of the family in core/model/families.

#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/gguf/model_builder.h"

namespace headscope::checkpoint::gguf {

struct Architecture {
    std::string_view name;  ///< general.architecture
    void (*build)(ModelBuilder& build);
};

/// Null where it is not read.
const Architecture* find_architecture(std::string_view name);
std::string known_architectures();  ///< for errors

void build_llama(ModelBuilder& build);
void build_granite(ModelBuilder& build);
void build_granite_experts(ModelBuilder& build);
void build_smollm3(ModelBuilder& build);
void build_qwen2(ModelBuilder& build);
void build_qwen2_experts(ModelBuilder& build);
void build_qwen3(ModelBuilder& build);
void build_qwen3_experts(ModelBuilder& build);
void build_seed_oss(ModelBuilder& build);
void build_olmo2(ModelBuilder& build);
void build_olmoe(ModelBuilder& build);
void build_gemma(ModelBuilder& build);
void build_gemma2(ModelBuilder& build);
void build_gemma3(ModelBuilder& build);
void build_phi2(ModelBuilder& build);
void build_phi3(ModelBuilder& build);
void build_gpt_oss(ModelBuilder& build);
void build_mamba(ModelBuilder& build);
void build_mamba2(ModelBuilder& build);
void build_qwen3_next(ModelBuilder& build);
void build_qwen35(ModelBuilder& build);
void build_qwen35_experts(ModelBuilder& build);
void build_lfm2(ModelBuilder& build);
void build_gpt2(ModelBuilder& build);
void build_gpt_neox(ModelBuilder& build);
void build_bloom(ModelBuilder& build);
void build_falcon(ModelBuilder& build);
void build_starcoder2(ModelBuilder& build);
void build_stablelm(ModelBuilder& build);
void build_nemotron(ModelBuilder& build);
void build_command_r(ModelBuilder& build);
void build_cohere2(ModelBuilder& build);
void build_mpt(ModelBuilder& build);
void build_olmo(ModelBuilder& build);
void build_exaone4(ModelBuilder& build);
void build_glm4(ModelBuilder& build);
void build_bert(ModelBuilder& build);

}  // namespace headscope::checkpoint::gguf
