// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/mixers/types/type.h"
#include "core/model/load/recipe.h"

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
/// The settings that are no sizes.
void read_llama_choices(ModelConfig& config, const ConfigReader& reader, std::int64_t default_positions);
TensorNames llama_names(const ModelConfig& config);
/// The same with the head of LlamaForSequenceClassification where the file has it.
TensorNames llama_or_score_names(const ModelConfig& config);
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
void read_granite_scales(ModelConfig& config, const ConfigReader& reader);
void name_granite_experts(TensorNames& names);
void read_qwen_experts(ModelConfig& config, const ConfigReader& reader, const std::string& key, std::int64_t experts,
                       std::int64_t per_token, std::int64_t size);
void name_qwen_experts(TensorNames& names);
void name_mixtral_experts(TensorNames& names);

// DeepSeek's latent attention, and its experts, which GLM-4.5 has too; `defaults` are what a file leaves out.
struct DeepseekExperts {
    std::int64_t experts, per_token, size, shared, first_layer;  ///< per_token 0: the file must say it
    double scale;
};
ModelConfig read_latent_attention(const ConfigReader& reader, const SizeDefaults& defaults,
                                  std::int64_t default_positions);
void read_deepseek_experts(ModelConfig& config, const ConfigReader& reader, const std::string& key,
                           const DeepseekExperts& defaults);
/// Refuses settings of routing that the published code reads and transformers does not. `scores`: the family's.
void refuse_other_routing(const ConfigReader& reader, const std::string& scores);
/// A token's experts are those of its best groups.
void read_expert_groups(ModelConfig& config, const ConfigReader& reader, std::int64_t groups,
                        std::int64_t groups_per_token, std::int64_t best_of_group);
/// By sigmoids, and a number of each expert that counts in the choice.
void read_sigmoid_routing(ModelConfig& config, const ConfigReader& reader, std::int64_t groups,
                          std::int64_t groups_per_token);
void name_deepseek_experts(TensorNames& names);
TensorNames deepseek_names(const ModelConfig& config);

/// no_rope_layers: 1 for each layer that has positions; else all but every no_rope_layer_interval-th have.
/// `empty_is_none`: an empty list is as none.
std::vector<std::int64_t> read_rotary_layers(const ConfigReader& reader, std::int64_t layers, bool empty_is_none);

// Gated DeltaNet beside softmax attention, as Qwen3-Next and those after it have it.
/// The list under `key`, or where the file has none what `softmax` says: layers of linear_attention have `mixer`.
void read_linear_layers(ModelConfig& config, const ConfigReader& reader, const mixers::MixerType& mixer,
                        const std::function<bool(std::int64_t layer)>& softmax, const std::string& key = "layer_types");
/// Sizes where the file says nothing; value_size 0: twice the key's.
struct LinearHeads {
    std::int64_t key_heads, heads, key_size, value_size;
};
/// linear_num_key_heads and the like, for Gated DeltaNet.
void read_gated_delta_heads(ModelConfig& config, const ConfigReader& reader, const LinearHeads& defaults);
/// For layers with Gated DeltaNet; other parts as in those with softmax attention.
LayerNames gated_delta_names(const LayerNames& softmax);
/// Qwen3-Next's and Qwen3.5's, without the feed-forward.
ModelConfig read_qwen_hybrid(const ConfigReader& reader, const SizeDefaults& sizes);
void name_shared_qwen_expert(TensorNames& names);

// Mamba2 beside attention: what a family's config.json calls its sizes, and with it the names of its parts.
struct Mamba2Keys {
    std::string heads, head_size, state_size, groups, taps;
};
RecurrentNames mamba2_names(const std::string& stem, const Mamba2Keys& keys);
/// Those of Bamba, Granite 4 and Falcon-H1.
inline const Mamba2Keys kMambaKeys{"mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_n_groups", "mamba_d_conv"};
/// Mamba2's sizes; `inner` numbers of all heads together, by `inner_key`.
void read_mamba2_sizes(ModelConfig& config, const ConfigReader& reader, std::int64_t inner,
                       const std::string& inner_key);
/// The same of mamba_expand times the hidden size, where some layers have it and others softmax attention, whose biases
/// have been read (Bamba, Granite 4).
void read_mamba2_layers(ModelConfig& config, const ConfigReader& reader);
/// `names` has what the layers share and those with softmax attention.
void name_mamba2_layers(TensorNames& names, const ModelConfig& config);

// Shared by flash-linear-attention's models (version 0.6.0); `defaults` are its classes'.
struct FlaDefaults {
    std::int64_t layers = 24, heads = 0;
    double feed_forward_ratio = 4;
};
ModelConfig read_fla(const ConfigReader& reader, const FlaDefaults& defaults);
/// A null is false there, whatever a missing key is.
bool read_fla_flag(const ConfigReader& reader, const std::string& key, bool otherwise);
/// Numbers of one head, where `key` says how many all have for each of the hidden size.
std::int64_t read_fla_head(const ConfigReader& reader, const ModelConfig& config, const std::string& key,
                           double otherwise);
/// Sets the mixer's heads: `num_heads`, `head_dim` and `expand_v`.
void set_fla_heads(ModelConfig& config, const mixers::MixerType& mixer, std::int64_t key_size, std::int64_t value_size);
/// Layers that `attn` names have softmax attention, all others `mixer`. Comes last: the model's heads are softmax's.
void read_fla_layers(ModelConfig& config, const ConfigReader& reader, const mixers::MixerType& mixer);
/// num_kv_heads, use_output_gate and what RetNet and GLA have that is not built.
void read_fla_linear(ModelConfig& config, const ConfigReader& reader, const mixers::MixerType& mixer, double expand_key,
                     double expand_value);
TensorNames fla_names(const ModelConfig& config);
/// The same with the norm's two names of RetNet and GLA.
TensorNames fla_linear_names(const ModelConfig& config);

/// Heads of Mamba2 under a family's keys.
struct Mamba2Heads {
    std::int64_t heads, head_size, state_size, groups, taps;
};
/// Refuses, by `groups_key`, groups that do not divide the heads.
void set_mamba2_heads(ModelConfig& config, const ConfigReader& reader, const Mamba2Heads& sizes,
                      const std::string& groups_key);
/// The same, within bounds that are refused by `keys`.
void set_bounded_mamba2(ModelConfig& config, const ConfigReader& reader, const Mamba2Heads& sizes,
                        const Mamba2Keys& keys);
/// The bounds of dt that `key` has; none where the file has not.
void read_step_limit(ModelConfig& config, const ConfigReader& reader, const std::string& key);

// BART's, which the others of its names start from. What the file leaves out: `sizes` (0: it must not), and a start
// token, which counts where the vocabulary has it.
struct BartDefaults {
    SizeDefaults encoder, decoder;
    std::int64_t positions = 1024, start = 2;
    std::string activation = "gelu";
    bool scaled = false;
};
ModelConfig read_bart(const ConfigReader& reader, const BartDefaults& defaults);
TensorNames bart_names(const ModelConfig& config);
TensorNames bart_encoder_names(const ModelConfig& config);
/// The same with norms before what they were behind, and one at the end of each tower (mBART).
ModelConfig read_pre_norm_bart(const ConfigReader& reader, const BartDefaults& defaults);
/// Both towers of a BART, which `change` is for.
void change_towers(ModelConfig& decoder, const std::function<void(ModelConfig& tower)>& change);
/// Defaults of most configuration classes of these families.
BartDefaults large_bart(std::int64_t vocabulary, std::int64_t start);

// T5's, with what feed_forward_proj says where the file does not.
ModelConfig read_t5(const ConfigReader& reader, const std::string& feed_forward);
TensorNames t5_names(const ModelConfig& config);
TensorNames t5_encoder_names(const ModelConfig& config);

// GPT-2's, and BERT's.
TensorNames gpt2_names(const ModelConfig& config);
ModelConfig read_bert(const ConfigReader& reader);
TensorNames bert_names(const ModelConfig& config);

}  // namespace headscope::model
