// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/gguf/architectures/architecture.h"

#include <algorithm>
#include <array>

namespace headscope::checkpoint::gguf {
namespace {

constexpr std::array kArchitectures{
    Architecture{"llama", build_llama},
    Architecture{"qwen2", build_qwen2},
    Architecture{"qwen2moe", build_qwen2_experts},
    Architecture{"qwen3", build_qwen3},
    Architecture{"qwen3moe", build_qwen3_experts},
    Architecture{"qwen3next", build_qwen3_next},
    Architecture{"qwen35", build_qwen35},
    Architecture{"qwen35moe", build_qwen35_experts},
    Architecture{"gemma", build_gemma},
    Architecture{"gemma2", build_gemma2},
    Architecture{"gemma3", build_gemma3},
    Architecture{"phi2", build_phi2},
    Architecture{"phi3", build_phi3},
    Architecture{"gpt-oss", build_gpt_oss},
    Architecture{"mamba", build_mamba},
    Architecture{"mamba2", build_mamba2},
    Architecture{"lfm2", build_lfm2},
    Architecture{"granite", build_granite},
    Architecture{"granitemoe", build_granite_experts},
    Architecture{"smollm3", build_smollm3},
    Architecture{"seed_oss", build_seed_oss},
    Architecture{"olmo2", build_olmo2},
    Architecture{"olmoe", build_olmoe},
    Architecture{"gpt2", build_gpt2},
    Architecture{"gptneox", build_gpt_neox},
    Architecture{"bloom", build_bloom},
    Architecture{"falcon", build_falcon},
    Architecture{"starcoder2", build_starcoder2},
    Architecture{"stablelm", build_stablelm},
    Architecture{"nemotron", build_nemotron},
    Architecture{"command-r", build_command_r},
    Architecture{"cohere2", build_cohere2},
    Architecture{"mpt", build_mpt},
    Architecture{"olmo", build_olmo},
    Architecture{"exaone4", build_exaone4},
    Architecture{"glm4", build_glm4},
    Architecture{"bert", build_bert},
};

}  // namespace

const Architecture* find_architecture(std::string_view name) {
    const auto* found = std::find_if(kArchitectures.begin(), kArchitectures.end(),
                                     [name](const Architecture& one) { return one.name == name; });
    return found == kArchitectures.end() ? nullptr : found;
}

std::string known_architectures() {
    std::string all;
    for (const Architecture& one : kArchitectures) all += (all.empty() ? "" : ", ") + std::string(one.name);
    return all;
}

}  // namespace headscope::checkpoint::gguf
