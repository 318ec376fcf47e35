// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A family of models: a recipe of two functions, one that turns config.json into a ModelConfig with every choice filled
// in, and one that returns the file's name of each part. The stack computes from these alone.

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/config.h"
#include "core/model/load/config_reader.h"

namespace headscope::checkpoint {
class Checkpoint;
}

namespace headscope::model {

/// config.json's keys of the sizes, for reading and for errors.
struct SizeKeys {
    std::string vocabulary = "vocab_size";
    std::string hidden = "hidden_size";
    std::string layers = "num_hidden_layers";
    std::string heads = "num_attention_heads";
    std::string key_value_heads = "num_key_value_heads";
    std::string head_size = "head_dim";
    std::string value_size = "v_head_dim";  ///< ModelConfig::value_size
    std::string feed_forward = "intermediate_size";
    std::string positions = "max_position_embeddings";
    std::string token_types = "type_vocab_size";
    std::string experts = "num_local_experts";
    std::string expert_feed_forward = "moe_intermediate_size";
    std::string shared_expert = "shared_expert_intermediate_size";
    std::string distance_buckets = "relative_attention_num_buckets";
    std::string embedding = "embedding_size";
    std::string classes = "head.classes";
};

/// How query, key and value lie in one fused tensor's output columns: all queries, all keys, all values; or head by
/// head the query, key and value of one (NeoX, BLOOM); or key head by key head its queries, itself, its value (Falcon).
enum class FusedLayout { concatenated, by_head, by_group };

/// Names of a layer's experts, following TensorNames::layer_stem: all experts' matrices in two tensors, which have
/// whole names; or each expert's own three, in which {} is its number.
struct ExpertNames {
    std::string router;
    std::string gate_up;  ///< [experts, 2 * inner, hidden], or
    std::string gate,
        up;  ///< each [inner, hidden]; without gates `gate` is empty, and gate_up [experts, inner, hidden]
    std::string down;
    bool input_first = false;  ///< of two tensors: each expert's are [in, out] (Llama 4)
    std::string choice_bias;   ///< a whole name, ExpertRouting::choice_bias
};

/// Names of a recurrent mixer's parts: of a layer's, after TensorNames::layer_stem and `stem`.
struct RecurrentNames {
    std::string stem = "self_attn.";
    std::string query = "q_proj", key = "k_proj", value = "v_proj", gate = "g_proj";
    std::string query_key_value;          ///< instead of three: all queries, all keys, all values; or
    std::string query_key_value_by_head;  ///< of heads that are alike: head by head its query, key and value; or
    std::string query_key_value_gate;     ///< of four: key head by key head its query, itself, its values, their gates
    std::string query_taps = "q_conv1d", key_taps = "k_conv1d", value_taps = "v_conv1d";  ///< of the convolutions
    std::string taps;  ///< instead of three, where the file has it
    std::string write = "b_proj", decay = "a_proj";
    std::string write_decay;  ///< instead of two: key head by key head that of its values, then their decay
    std::string rate_log = "A_log", step_bias = "dt_bias";  ///< whole names
    std::string norm = "o_norm";                            ///< of the output, or
    std::string other_norm;                                 ///< where the file lacks that
    /// A decay of low rank (GLA): the maps to the rank, and from it.
    std::string decay_rank = "gk_proj.0", decay_of_rank = "gk_proj.1";
    /// A decay and a gate of low rank (Kimi delta attention).
    std::string few_of_decay = "f_a_proj", decay_of_few = "f_b_proj";
    std::string few_of_gate = "g_a_proj", gate_of_few = "g_b_proj";
    /// Mamba2: the map to z, x, B, C and dt, the convolution of x, B and C, D (a whole name), the norm.
    std::string input = "in_proj", input_taps = "conv1d", direct = "D", gated_norm = "norm";
    /// config.json's keys of the sizes, for errors.
    struct Keys {
        std::string key_rows = "num_heads * head_dim", value_rows = "num_heads * head_dim * expand_v";
        std::string heads = "num_heads", value_size = "head_dim * expand_v", taps = "conv_size", key_size = "head_dim";
        std::string inner = "num_heads * head_dim", groups = "2 * num_groups * state_size";  ///< of Mamba2
    };
    Keys keys;
};

/// Names of one layer's parts, following TensorNames::layer. An empty name: the family has no such part. A linear part
/// or norm is "<name>.weight" and, if the ModelConfig has biases there, "<name>.bias".
struct LayerNames {
    std::string input_norm;             ///< before the mixer, or of the residual sum (ModelConfig::pre_norm)
    std::string attention_update_norm;  ///< of what the mixer returns, before it is added (Gemma 2, OLMo 2)
    /// ModelConfig::query_key_norm; of own ones {} is the head's number, or one tensor has all.
    std::string query_norm, key_norm;
    std::string sinks;              ///< a whole name, ModelConfig::sink_logits
    std::string query, key, value;  ///< three parts, or
    std::string query_key_value;    ///< one
    FusedLayout fused_layout = FusedLayout::concatenated;
    RecurrentNames recurrent;
    std::string output;
    bool plain_output = false;  ///< which has no bias, whatever ModelConfig::output_bias says
    std::string feed_forward_norm;
    std::string gate, up, down;  ///< gate: gated feed-forwards only
    std::string gate_up;         ///< gate's rows, then up's, in one
    std::string feed_forward_update_norm;
    std::string activation;                           ///< Activation::xielu's numbers
    std::vector<ExpertNames> experts;                 ///< alternatives: the first whose experts the file has
    std::string shared_gate, shared_up, shared_down;  ///< ModelConfig::shared_expert
    std::string shared_gate_up;                       ///< both in one
    std::string shared_share;                         ///< of shared_expert_gated: what its sigmoid is of
    std::string bucket_bias;                          ///< PositionKind::bucketed, of this layer
    /// PositionKind::relative: the map of positions to keys, and what is added to queries that meet keys (u) and
    /// positions (v), two whole names.
    std::string position_key, key_bias, position_bias;
    std::string cross_norm, cross_query, cross_key, cross_value, cross_output;  ///< of a decoder that has an encoder
    std::string cross_query_norm, cross_key_norm;                               ///< ModelConfig::query_key_norm there
    /// The same of files that call a layer's parts otherwise: the first of which the layer has the tensor `sign`.
    std::vector<LayerNames> others;
    std::string sign;
};

struct TensorNames {
    SizeKeys keys;
    /// Possible prefixes of every name of the backbone; the first one under which the token embedding is found.
    std::vector<std::string> prefixes{""};
    std::string token_embedding, position_embedding, token_type_embedding, embedding_norm;
    std::string shared_embedding;  ///< both towers' tokens, where `token_embedding` is not in the file; empty: none
    std::string bucket_bias;       ///< ModelConfig::distance_buckets, of all layers
    std::string key_bias, position_bias;  ///< LayerNames's, of all layers; empty: each has its own
    std::string adaptive_embedding;       ///< ModelConfig::adaptive; the head's is `head`
    /// Alternatives, whole names after the prefix: the rotary frequencies, which hold where the file has them.
    std::vector<std::string> rotary_frequencies;
    std::string guide, guide_ids;      ///< whole names after the prefix: noise and tokens of guide streams
    std::string embedding_projection;  ///< ModelConfig::embedding_size, from it to hidden
    std::string layer;                 ///< "layers.{}.", {} being the layer's number
    /// Instead, each of the file's layers by its own name: what ModelConfig::shared_layers counts.
    std::vector<std::string> listed_layers;
    /// Numbered layers: the file may have no more than `count` after `begin`.
    struct Numbered {
        std::string begin;
        std::int64_t count = 0;
        std::string key;  ///< of config.json
    };
    std::vector<Numbered> numbered;
    LayerNames in_layer;
    /// Instead, of layers with this mixer (by its name): hybrid models.
    std::map<std::string, LayerNames> of_mixer;
    std::string final_norm;
    std::string output_projection;  ///< from hidden back to ModelConfig::embedding_size, before the head (OPT)
    bool transposed = false;        ///< linear weights are stored [in, out] (GPT-2's Conv1D)
    bool old_norm_names = false;    ///< norms may be called gamma and beta (files made with TensorFlow)

    // The head's names have no prefix.
    std::string head;                    ///< "<head>.weight" unless tied
    std::string old_head;                ///< what older files call it; empty: the same
    std::vector<std::string> head_bias;  ///< alternatives, whole names
    std::string logits_bias;             ///< a whole name, [1, vocabulary], if the file has it (BART)
    std::string head_transform, head_transform_norm;

    /// The same of files that call their layers otherwise: the first whose layers the file has, unless it has these.
    std::vector<TensorNames> others;

    /// Suffixes of unused tensors in old files: mask buffers, position ids, rotary frequencies.
    std::vector<std::string> buffers;

    // Filled in by the stack while it declares its tensors:
    std::string prefix;      ///< the one of `prefixes` that the file has
    std::string layer_stem;  ///< prefix + layer with the number filled in
    /// The tensor that is left of a tied embedding, a whole name, where the file has none of the above: of names that
    /// share their numbers, writers keep one, which may be the head's or the other tower's.
    std::string lone_embedding;
};

struct Family {
    std::string name;
    std::vector<std::string> model_types;  ///< of config.json
    std::string summary;                   ///< a line for people
    ModelConfig (*read)(const ConfigReader& reader);
    TensorNames (*names)(const ModelConfig& config);
    /// For an encoder-decoder, whose `names` are the decoder's and the head's.
    TensorNames (*encoder_names)(const ModelConfig& encoder) = nullptr;
    /// Completes a configuration from the file's tensors, before it is read.
    void (*fill_in)(nlohmann::json& config, const checkpoint::Checkpoint& file) = nullptr;
};

/// More layers, and heads, than any file has: bounds on what is computed or allocated from a configuration before the
/// file's tensors are compared with it, and of layers that share their weights on how often these run.
inline constexpr std::int64_t kMostLayers = 4096;
inline constexpr std::int64_t kMostHeads = 65'536;

/// The first of `keys` that config.json has, else the last: sizes that go by several names.
std::string present_key(const ConfigReader& reader, const std::vector<std::string>& keys);

/// The sizes that every family has, checked against each other: heads divide into key-value heads, and head_size is
/// head_dim or hidden / heads (which must divide). The feed-forward's is `feed_forward_default` where the file has
/// none.
void read_sizes(ModelConfig& config, const ConfigReader& reader, const SizeKeys& keys,
                std::int64_t feed_forward_default = 0);

/// A family's defaults of sizes; 0: those of read_sizes.
struct SizeDefaults {
    std::int64_t key_value_heads = 0, head_size = 0;
    std::int64_t vocabulary = 0, hidden = 0, layers = 0, heads = 0, feed_forward = 0;  ///< 0: the file must have it
    bool may_lack_vocabulary = false;    ///< which then is 0 (ModelConfig::hashed)
    bool may_lack_feed_forward = false;  ///< whose size may then be 0, in the file too
};
void read_sizes(ModelConfig& config, const ConfigReader& reader, const SizeKeys& keys, const SizeDefaults& defaults);

/// Experts and how many of them a token has, under `key` and num_experts_per_tok.
void read_experts(ModelConfig& config, const ConfigReader& reader, const std::string& key, std::int64_t experts,
                  std::int64_t per_token);

/// A file of transformers' class "...ForSequenceClassification" or "...ForTokenClassification" (by `architectures`):
/// its head with one class per label, instead of the vocabulary's. For a text it is BERT's: a map, `activation`, the
/// classes, of the first token. Refuses label counts that disagree and problem types that do not fit.
void read_class_head(ModelConfig& config, const ConfigReader& reader, Activation activation = Activation::tanh);
/// Its names: `classes`, and for texts the map before it, `dense`, a whole name.
void name_class_head(TensorNames& names, const ModelConfig& config, const std::string& dense,
                     const std::string& classes = "classifier");
/// The same for heads of texts that lie in one module: classifier.dense and classifier.out_proj (RoBERTa).
void name_joint_class_head(TensorNames& names, const ModelConfig& config);
/// "...ForSequenceClassification" of a decoder: classes of the last token's state, without a map before them or a bias.
void read_score_head(ModelConfig& config, const ConfigReader& reader);
/// Its name, `score`.
void name_score_head(TensorNames& names, const ModelConfig& config);
/// classifier_pooling, where `first` names the first token's state in this family; `otherwise` where the file has none.
void read_text_pooling(ModelConfig& config, const ConfigReader& reader, const std::string& first,
                       const std::vector<std::string>& known, const std::string& otherwise);

/// `pattern` with the number in the place of {}.
std::string numbered(const std::string& pattern, std::int64_t number);

/// Refuses groups of heads and heads of a size of their own, for families that know neither.
void refuse_groups(const ModelConfig& config, const ConfigReader& reader, const SizeKeys& keys);

/// Learned positions that count the tokens that are not `padding`, from the row after that one's; `keys.positions` are
/// the table's rows (ModelConfig::max_positions).
void skip_padding_positions(ModelConfig& config, const ConfigReader& reader, const SizeKeys& keys,
                            std::int64_t padding);

/// sliding_window: `otherwise` where the file has none, 0 (no window) where it is null.
std::int64_t read_window(const ConfigReader& reader, std::int64_t otherwise);

/// Windows per layer from layer_types ("full_attention", "sliding_attention"), or from `first_windowed` on where there
/// is no such list. Empty when no layer has one.
std::vector<std::int64_t> read_windows(const ConfigReader& reader, std::int64_t layers, std::int64_t window,
                                       std::int64_t first_windowed);

/// The same where `sliding` says which layers have the window unless there is a list.
std::vector<std::int64_t> read_windows_where(const ConfigReader& reader, std::int64_t layers, std::int64_t window,
                                             const std::function<bool(std::int64_t layer)>& sliding);

/// The same where every layer has the window, and transformers reads no list: another one is refused.
std::vector<std::int64_t> read_windows_everywhere(const ConfigReader& reader, std::int64_t layers, std::int64_t window);

/// The same where layers 0, 2, 4 ... have the window unless there is a list.
std::vector<std::int64_t> read_alternating_windows(const ConfigReader& reader, std::int64_t layers,
                                                   std::int64_t window);

/// The same where every layer but 0, `every`, 2 * `every` ... has the window unless there is a list.
std::vector<std::int64_t> read_windows_between(const ConfigReader& reader, std::int64_t layers, std::int64_t window,
                                               std::int64_t every);

/// Rotary positions of a family with one set of numbers for layers without a window and one for those with
/// (ModelConfig::windows comes first): rope_scaling is for the former.
void read_two_ropes(ModelConfig& config, const ConfigReader& reader, RopeDefaults full, RopeDefaults windowed);

/// transformers 5 lets any configuration differ from layer to layer (per_layer_config): refused.
void refuse_layer_configs(const ConfigReader& reader);

/// Refuses what changes the computation and is not built: "expected false or absent".
void require_false(const ConfigReader& reader, const std::string& key);

/// Every family, in the order of `list families`.
const std::vector<const Family*>& families();
/// By config.json's model_type; throws Error(unsupported) that lists the known ones.
const Family& find_family(const ConfigReader& reader);

}  // namespace headscope::model
