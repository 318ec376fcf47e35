// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Parts that most decoders share: sizes, rotary positions, windows, names after Llama's, experts.

#include <cstdint>
#include <string>
#include <vector>

#include "core/checkpoint/gguf/model_builder.h"

namespace headscope::checkpoint::gguf {

struct DecoderSizes {
    std::int64_t hidden = 0, heads = 0, key_value_heads = 0, head_size = 0;
};

/// model_type, architectures, and the sizes of Llama's keys; ties the head where there is no output.weight.
DecoderSizes read_decoder(ModelBuilder& build, const std::string& model_type, const std::string& class_name);
/// Refuses groups that do not divide the heads, and heads of more numbers than any model has.
void check_heads(ModelBuilder& build, const DecoderSizes& sizes);
/// Rows of the embedding, or vocab_size.
std::int64_t read_vocabulary(ModelBuilder& build);
/// A number that is the same in every layer.
std::int64_t uniform(ModelBuilder& build, const std::string& name);
void read_rms_norm(ModelBuilder& build, const std::string& name = "rms_norm_eps");
void read_layer_norm(ModelBuilder& build, const std::string& name = "layer_norm_eps");

/// rope_theta and rope_scaling, with the factors of rope_freqs. Returns how much of a head turns.
std::int64_t read_rope(ModelBuilder& build, std::int64_t head_size);
/// The same of a whole head; refuses a part.
void read_whole_rope(ModelBuilder& build, std::int64_t head_size);
/// partial_rotary_factor, where a part of the head turns.
void read_partial_rope(ModelBuilder& build, std::int64_t head_size, const std::string& name = "partial_rotary_factor");

/// The same where the rotated part is known.
void set_partial_rope(ModelBuilder& build, std::int64_t rotated, std::int64_t head_size, const std::string& name);

/// sliding_window, and layer_types where `slides` is given or the file has a pattern. False: no window.
bool read_window(ModelBuilder& build, bool (*slides)(std::int64_t layer));

/// Embedding, final norm and head under Llama's names.
void name_ends(ModelBuilder& build, const Change& of_norm = nullptr, const std::string& norm = "model.norm");
/// model.layers.N.
std::string layer_stem(std::int64_t layer);
/// Query, key, value and output of one layer; the first three may be one matrix.
void name_attention(ModelBuilder& build, const DecoderSizes& sizes, std::int64_t layer,
                    const Change& of_query = nullptr, const Change& of_key = nullptr);
/// A name and the rows that follow those of the one before.
struct RowPart {
    std::string name;
    std::int64_t rows = 0;
    Change change = nullptr;
};
/// `stored`.weight and .bias, if they exist, as several modules.
void split_rows(ModelBuilder& build, const std::string& stored, const std::vector<RowPart>& parts);
/// Gate, up and down of one layer.
void name_feed_forward(ModelBuilder& build, std::int64_t layer);
/// Norms of query and key heads.
void name_head_norms(ModelBuilder& build, std::int64_t layer, const Change& change = nullptr);

/// num_experts and num_experts_per_tok under `count_key`. Refuses functions other than softmax and scales other than 1.
void read_experts(ModelBuilder& build, const std::string& count_key);
/// Router and matrices of one layer's experts: `router`, `stem`gate_up_proj [E, 2 inner, in], `stem`down_proj.
void name_experts(ModelBuilder& build, std::int64_t layer, const std::string& router, const std::string& stem);
/// gate's rows, then up's, of each expert.
PackedPointer stacked_gate_up(const PackedPointer& gate, const PackedPointer& up);
/// The shared expert of Qwen.
void name_shared_expert(ModelBuilder& build, std::int64_t layer);
/// True if the layer has experts.
bool has_experts(const ModelBuilder& build, std::int64_t layer);

}  // namespace headscope::checkpoint::gguf
