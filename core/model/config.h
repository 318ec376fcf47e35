// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/mixers/types/options.h"
#include "core/tokenizer/hashed/settings.h"

namespace headscope::model {

enum class NormKind { layer, rms };
enum class Activation { gelu, gelu_tanh, gelu_quick, silu, relu, relu_squared, tanh, xielu };
/// Output of a model's hidden states: rows of the vocabulary (next or masked tokens), classes of each token or of the
/// text (TextPooling), or nothing.
enum class HeadKind { vocabulary, token_classes, sequence_classes, none };
/// Input of a head for classes of texts: the first token's state, the mean of all states, all states, whose logits are
/// averaged (EuroBERT's "late"), or the state of the last token that is no padding (decoders).
enum class TextPooling { first, mean, logits, last };
enum class PositionKind { none, learned, sinusoidal, rotary, alibi, bucketed, relative };

/// Norms of query and key before the scores: of each head for itself (Qwen3), perhaps with a gain of its own and no
/// bias (StableLM), or of all heads' numbers together (OLMo 2); or of each head after its rotation, without a gain, in
/// layers that have one (Llama 4).
enum class QueryKeyNorm { none, each_head, own_of_each_head, all_heads, rotated_head };

/// rope_scaling / rope_parameters of transformers, every kind it knows for texts: default, linear, dynamic, yarn,
/// longrope, llama3, proportional.
struct RopeConfig {
    std::string type = "default";
    double theta = 10000.0;
    double partial = 1.0;      ///< share of the head that is rotated
    std::int64_t size = 0;     ///< how much of the head is, where a family says it so; 0: `partial` of it
    bool interleaved = false;  ///< pairs are neighbours (GPT-J), not first half with second half
    double factor = 1.0;
    double low_frequency_factor = 1.0, high_frequency_factor = 4.0;  // llama3
    double beta_fast = 32.0, beta_slow = 1.0;                        // yarn
    std::optional<double> attention_factor, mscale, mscale_all_dim;  // yarn, longrope
    bool truncate = true;                                            // yarn
    std::vector<double> short_factor, long_factor;                   // longrope
    std::int64_t original_positions = 0;
};

/// How a token's experts are chosen by the router's logits, and weighted.
struct ExpertRouting {
    bool sigmoid = false;      ///< of each logit for itself, not the softmax of all
    bool choice_bias = false;  ///< a number of each expert counts in the choice, not in its weight (DeepSeek-V3)
    /// Consecutive experts form `groups` groups. A token's experts come from its best groups, and a group's score is
    /// the sum of its `best_of_group` best experts.
    std::int64_t groups = 1, groups_per_token = 1, best_of_group = 1;
    double scale = 1;           ///< of the weights
    bool wide = false;          ///< float32, whatever the model's type
    bool weighs_input = false;  ///< weights multiply what an expert reads, not what it returns (Llama 4)
};

/// Families' deviations of Mamba2 from the native format; defaults are the native ones.
struct StateSpaceConfig {
    bool projection_bias = false, taps_bias = true;
    bool normed = true;             ///< false: y * SiLU(z) as it is
    bool norm_first = false;        ///< norm(y) * SiLU(z)
    bool direct_by_number = false;  ///< D is of each number of a head: no implicit matrix then
    // Bounds of dt.
    double least_step = 0, most_step = std::numeric_limits<double>::infinity();
    bool limits_step() const { return least_step > 0 || most_step < std::numeric_limits<double>::infinity(); }
    std::vector<double> factors;  ///< of z, x, B, C and dt as their map gives them; empty: none (Falcon-H1)
    bool operator==(const StateSpaceConfig&) const = default;
};

/// A layer with softmax attention and Mamba2 side by side (Falcon-H1): factors on each one's input and output.
struct BranchFactors {
    double attention_in = 1, attention_out = 1, state_in = 1, state_out = 1;
    bool state_bias = false;  ///< of Mamba2's output projection; ModelConfig::output_bias is the attention's
};

/// Layers with Mamba (Jamba): channels, numbers of each one's state, and rank of its step.
struct SelectiveScanConfig {
    std::int64_t channels = 0, state_size = 0, rank = 0, taps = 0;
    bool input_bias = false, taps_bias = true;
};

/// A vocabulary in clusters of entries, the frequent ones first, that have ever shorter vectors; the head's softmax is
/// over the first cluster and the others as wholes, and within each of these (Grave et al., arXiv 1609.04309; Baevski
/// and Auli, arXiv 1809.10853).
struct AdaptiveConfig {
    std::vector<std::int64_t> ends;  ///< of the clusters, rising; the last is the vocabulary's size
    std::int64_t size = 0;           ///< of the first cluster's vectors
    std::int64_t divisor = 1;        ///< cluster n's have size / divisor^n numbers; 1: all lie in one table
    bool tied_tables = true;         ///< the head's are the embedding's
    std::vector<bool> tied_maps;     ///< per cluster: the head's map from hidden to its vectors is the embedding's

    std::int64_t clusters() const { return static_cast<std::int64_t>(ends.size()); }
    std::int64_t begin(std::int64_t cluster) const {
        return cluster == 0 ? 0 : ends[static_cast<std::size_t>(cluster - 1)];
    }
    std::int64_t entries(std::int64_t cluster) const {
        return ends[static_cast<std::size_t>(cluster)] - begin(cluster);
    }
    std::int64_t size_of(std::int64_t cluster) const {
        std::int64_t numbers = size;
        for (std::int64_t n = 0; n < cluster; ++n) numbers /= divisor;
        return numbers;
    }
};

/// A layer of softmax attention whose heads are not the model's (flash-linear-attention's `attn`).
struct LayerHeads {
    std::int64_t heads = 0, key_value_heads = 0;  ///< of size hidden / heads
    bool biases = false;
    double theta = 0;  ///< of rotary positions
    bool operator==(const LayerHeads&) const = default;
};

/// In ModelConfig::mixers a layer that is its feed-forward alone, without a site (Nemotron-H).
inline constexpr const char* kNoMixer = "none";

/// Factors of a sum of the residual stream: on the stream, and on the result of a part of a block.
struct SumFactors {
    double kept = 1, added = 1;
    bool operator==(const SumFactors&) const = default;
};

/// Everything that decides the computation, with every choice filled in; families fill it from config.json, the stack
/// reads nothing else. to_json() is what analysis files store beside the original configuration.
struct ModelConfig {
    std::string family;  ///< "gpt2", "llama", "qwen2", "bert"
    std::string name;    ///< for people: the checkpoint's folder name
    std::int64_t vocabulary = 0;
    std::int64_t hidden = 0;
    std::int64_t feed_forward = 0;  ///< 0: blocks are their mixer alone, but for experts
    std::int64_t layers = 0;
    std::int64_t heads = 0;
    std::int64_t key_value_heads = 0;
    std::int64_t head_size = 0;
    /// Latent attention (DeepSeek): keys and values come from this many numbers of each token; 0: none. The last
    /// `rope.size` numbers of a head are rotated, and those of a key are the same in all heads.
    std::int64_t key_value_rank = 0;
    std::int64_t query_rank = 0;  ///< the same of queries, which may be without
    std::int64_t value_size = 0;  ///< of a value head there, head_size being a query's and key's
    /// Attention is the difference of two softmax maps, of the first half of the heads and of the second (DiffLlama).
    bool differential = false;
    std::int64_t token_types = 0;        ///< 0: no such embedding
    std::int64_t max_positions = 0;      ///< 0: no limit
    bool positions_are_a_table = false;  ///< of `positions` rows: --beyond-positions cannot work
    bool causal = true;
    bool pre_norm = true;  ///< false: x = norm(x + f(x)), the original Transformer's
    /// x + f(norm x) + g(norm' x), from one input; g shares f's norm where the family has no name for another (GPT-J).
    bool parallel_residual = false;
    bool parallel_norms = true;  ///< of these two; false: g's input is f's, whatever names a family has
    /// Pre-norm: what an update is added to is what the norm returned (BLOOM's
    /// apply_residual_connection_post_layernorm).
    bool residual_after_norm = false;
    bool embedding_norm = false;
    bool embedding_norm_first = false;  ///< before positions are added (the decoder of small Blenderbot)
    bool final_norm = true;
    bool query_key_value_bias = false;
    bool output_bias = false;  ///< of the projection after the heads
    /// Softmax attention: behind each head's query lie as many numbers more, by whose sigmoid what the head gives is
    /// multiplied (Qwen3-Next).
    bool attention_gate = false;
    bool feed_forward_bias = false;
    HeadKind head = HeadKind::vocabulary;
    std::int64_t classes = 0;  ///< of a head of classes
    TextPooling text_pooling = TextPooling::first;
    /// config.json's, of a head for texts: "regression", "single_label_classification", "multi_label_classification".
    /// Empty: a number where there is one class, else one class of several.
    std::string problem_type;
    bool head_bias = false;       ///< one number for each entry of the vocabulary, or class
    bool head_transform = false;  ///< dense, activation and norm before the vocabulary (BERT's)
    bool head_transform_norm = true;
    bool head_transform_bias = true;
    std::optional<Activation> head_activation;  ///< of that transform, where it is another one
    bool tied_head = false;
    NormKind norm = NormKind::layer;
    double norm_epsilon = 1e-5;
    bool norm_affine = true;            ///< false: norms have neither gain nor bias
    bool norm_bias = true;              ///< of layer norms
    double norm_gain_offset = 0.0;      ///< 1: the gain is 1 + w (Gemma, Nemotron), but of a recurrent mixer's own norm
    double recurrent_norm_epsilon = 0;  ///< of that norm; 0: norm_epsilon
    bool first_input_norm = true;       ///< false: layer 0 reads the embedding as it is (ModernBERT)
    QueryKeyNorm query_key_norm = QueryKeyNorm::none;
    double query_key_norm_epsilon = 0;  ///< of these norms; 0: norm_epsilon
    double query_key_value_clip = 0;    ///< so far from 0 may their numbers be, after these norms; 0: any (OLMo)
    Activation activation = Activation::gelu;
    bool gated_feed_forward = false;
    PositionKind positions = PositionKind::learned;
    std::int64_t position_offset = 0;  ///< row of the position table that the first token reads
    /// PositionKind::sinusoidal, sines in the first half and cosines in the second. Marian's wavelengths begin at 2 pi
    /// and stop short of 20 000 pi; the file may have the table. fairseq's (M2M100) reach it, and never lie in a file.
    bool fairseq_sinusoids = false;
    bool interleaved_sinusoids = false;  ///< instead: sine and cosine of one frequency are neighbours (Vaswani et al.)
    /// Tokens with this id read the row before that and are not counted (RoBERTa); -1: none.
    std::int64_t position_padding = -1;
    RopeConfig rope;
    std::vector<std::int64_t> rotary_layers;  ///< per layer, 0: it has no positions, 1: it has. Empty: all have
    std::optional<RopeConfig> window_rope;    ///< of the layers that have a window, where theirs is another one
    double alibi_scale = 1.0;                 ///< of ALiBi's slopes, which the scores' scale does not touch
    bool alibi_rounded = false;               ///< slope, position and product are in bfloat16 (Falcon)
    /// A query at position p, from 0, is multiplied by 1 + growth ln(1 + floor(p / step)) (Ministral 3).
    double query_growth = 0;
    std::int64_t query_growth_step = 0;
    bool query_growth_unrotated = false;  ///< in layers without positions alone, p from 1 (Llama 4)
    /// PositionKind::relative (Transformer-XL): the position of farther keys is that of a key so far away; 0: none.
    std::int64_t clamped_distance = 0;
    bool own_position_biases = true;  ///< of each layer; false: all share u and v
    std::int64_t memory_length = 0;   ///< tokens before its segment that a token sees (Transformer-XL)
    bool memory_is_a_window = false;  ///< a token sees `memory` tokens in all, itself included, in every segment
    std::optional<AdaptiveConfig> adaptive;
    /// Input instead of a table of the vocabulary, which is then 0: hashes of words.
    tokenizer::HashSettings hashed;
    std::int64_t embedding_size = 0;  ///< of the table, projected to `hidden`; 0: hidden itself
    /// Projects the sum of all embeddings after its norm, with a bias (ALBERT); else the token's alone (OPT).
    bool embedding_sum_projected = false;
    double embedding_scale = 1.0;  ///< of the token's embedding, before anything is added to it
    /// Tokens with this id have no embedding, and those of the others are scaled up for it (ESM's token_dropout); -1:
    /// no such token.
    std::int64_t dropped_token = -1;
    std::vector<SumFactors> attention_sums;  ///< per layer (MiniMax). Empty: both 1
    SumFactors feed_forward_sum;
    double update_scale = 1.0;  ///< of what attention and feed-forward return, before it is added (Granite)
    /// Per layer, which of the file's layers it is, where several are the same one (ALBERT). Empty: each its own.
    std::vector<std::int64_t> shared_layers;
    std::int64_t group_layers = 1;      ///< how many of those the file numbers together
    std::vector<std::int64_t> windows;  ///< per layer, keys with |i - j| < W; 0: none. Empty: none anywhere
    /// Per layer: the text is cut into pieces of this many tokens, and a token sees its own piece alone; 0: not cut.
    /// Empty: none is.
    std::vector<std::int64_t> chunks;
    BranchFactors branch_factors;
    SelectiveScanConfig selective_scan;
    double gate_scale = 1;                          ///< of a gated feed-forward's gate, before its activation
    std::vector<std::int64_t> feed_forward_layers;  ///< per layer, 0: it has none. Empty: all have
    std::int64_t convolution_taps = 0;              ///< of layers that are a convolution (LFM2)
    bool convolution_bias = false;                  ///< of these and the map before them
    bool sink_logits = false;  ///< one learned logit without a value per head in each row's denominator
    std::int64_t experts = 0, experts_per_token = 0;  ///< of each feed-forward; 0: a plain one
    std::int64_t expert_feed_forward = 0;             ///< hidden units of an expert; 0: feed_forward
    std::vector<std::int64_t> expert_layers;          ///< per layer, 0: it has a plain one. Empty: all have experts
    /// Weights of a token's experts: the softmax over these; false: their part of the softmax over all experts.
    bool expert_shares_of_chosen = true;
    ExpertRouting routing;
    /// Hidden units of one more expert, which every token has; 0: none. Gated: times the sigmoid of a logit of its own.
    std::int64_t shared_expert = 0;
    bool shared_expert_gated = false;
    /// An expert's gate g and other half u, cut at this limit, make (u + 1) g sigmoid(slope g) (gpt-oss); 0: they make
    /// activation(g) u.
    double expert_limit = 0, expert_slope = 1;
    double attention_scale = 0;                      ///< 0: 1 / sqrt(head_size)
    bool scale_by_inverse_layer = false;             ///< layer l (from 0) divides its scores by l + 1
    std::vector<std::string> mixers;                 ///< per layer; empty: "standard" everywhere
    mixers::MixerOptions mixer_options;              ///< of those that have any
    std::map<std::int64_t, LayerHeads> layer_heads;  ///< by layer number
    // Settings of recurrent mixers that only families have:
    std::optional<Activation> feature_map;  ///< of queries and keys, before they turn (RetNet, GLA)
    bool sigmoid_gate = false;              ///< Gated DeltaNet: the output's gate is a sigmoid, not SiLU
    StateSpaceConfig state_space;
    double initializer_range = 0.02;  ///< deviation of fresh matrices, embeddings and guide noise
    double soft_cap = 0, final_soft_cap = 0;
    /// A bias of the scores by distance, one table for all layers of a tower or one for each, alone
    /// (PositionKind::bucketed, T5) or beside other positions (MPNet); distances from `farthest_bucket` on share one
    /// entry. 0: none.
    std::int64_t distance_buckets = 0, farthest_bucket = 0;
    std::int64_t bucket_rows =
        0;                    ///< of that table, where it has further ones, which nothing reads; 0: distance_buckets
    double head_scale = 1.0;  ///< of the hidden states that the head reads
    /// For an encoder-decoder: this is the decoder, and the encoder that it attends to is
    std::shared_ptr<const ModelConfig> encoder;
    bool own_embedding = false;       ///< each tower's tokens have a table of their own, perhaps of another vocabulary
    std::int64_t decoder_start = -1;  ///< the token that every text of such a decoder begins with; -1: not known
    std::string original_json;        ///< config.json as it was read
    /// For a native stack that transformers has: the model type whose tensor names it uses (bert, gpt2, bart). Empty:
    /// its own.
    std::string layout;

    /// Layers that a file may have after these, which predict further tokens and are not run.
    std::int64_t further_layers = 0;

    /// Ids are below it.
    std::int64_t ids() const { return hashed.is_table() ? vocabulary : hashed.ids(); }
    /// Entries of the vocabulary of what is read: an encoder-decoder's source.
    std::int64_t source_vocabulary() const { return encoder ? encoder->vocabulary : vocabulary; }
    bool has_classes() const { return head == HeadKind::token_classes || head == HeadKind::sequence_classes; }
    /// True if the stack that reads the input has a table of token types; other stacks get none.
    bool reads_types() const { return (encoder ? encoder->token_types : token_types) > 0; }
    /// Columns of the logits.
    std::int64_t head_columns() const { return has_classes() ? classes : vocabulary; }
    /// Layers of the whole model, as files and the command line number them: the encoder's come first.
    std::int64_t all_layers() const { return layers + (encoder ? encoder->layers : 0); }
    bool has_experts(std::int64_t layer) const {
        return experts > 0 && (expert_layers.empty() || expert_layers.at(static_cast<std::size_t>(layer)) != 0);
    }
    bool has_feed_forward(std::int64_t layer) const {
        if (!feed_forward_layers.empty()) return feed_forward_layers.at(static_cast<std::size_t>(layer)) != 0;
        return feed_forward > 0 || has_experts(layer);
    }
    std::int64_t expert_size() const { return expert_feed_forward > 0 ? expert_feed_forward : feed_forward; }
    /// The same with what layer_heads has of a layer in place of the model's.
    ModelConfig of_layer(std::int64_t layer) const;
    std::string to_json() const;
};

}  // namespace headscope::model
