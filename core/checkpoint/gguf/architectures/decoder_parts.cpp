// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/gguf/architectures/decoder_parts.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace headscope::checkpoint::gguf {
namespace {

/// The experts' matrices, where a file of before the stacked ones has one each: ffn_gate.0.weight.
PackedPointer take_experts(ModelBuilder& build, std::int64_t layer, const std::string& part) {
    const std::string stacked = block(layer) + part + "_exps.weight";
    if (build.has_tensor(stacked)) return build.take_scaled(stacked);
    const auto name_of = [&](std::size_t expert) {
        return block(layer) + part + "." + std::to_string(expert) + ".weight";
    };
    std::vector<PackedPointer> each;
    while (build.has_tensor(name_of(each.size()))) each.push_back(build.take_scaled(name_of(each.size())));
    if (each.empty()) return build.take(stacked);
    const std::vector<std::int64_t> one = each.front()->shape();
    for (std::size_t i = 0; i < each.size(); ++i) {
        if (each[i]->shape() != one || one.size() != 2)
            build.refuse_tensor(name_of(i), "expected the shape of the first expert, a matrix", "found another");
    }
    const auto count = static_cast<std::int64_t>(each.size());
    return with_rows(std::move(each), {count, one[0], one[1]}, [rows = one[0]](std::int64_t row) {
        return SourceRow{static_cast<std::size_t>(row / rows), row % rows};
    });
}

void read_factor_tensor(ModelBuilder& build, std::int64_t rotated, bool scaled) {
    if (!build.has_tensor("rope_freqs.weight")) return;
    const std::vector<float> factors = build.read_numbers("rope_freqs.weight");
    if (static_cast<std::int64_t>(factors.size()) != rotated / 2) {
        build.refuse_tensor("rope_freqs.weight", "expected " + std::to_string(rotated / 2) + " numbers",
                            "found " + std::to_string(factors.size()));
    }
    if (std::all_of(factors.begin(), factors.end(), [](float factor) { return factor == 1.0F; })) return;
    if (scaled) build.unsupported("rope.scaling.type", "expected no scaling beside rope_freqs.weight");
    if (!std::all_of(factors.begin(), factors.end(), [](float factor) { return factor > 0 && std::isfinite(factor); }))
        build.refuse_tensor("rope_freqs.weight", "expected numbers above 0", "found another");
    // Long and short factors alike: each inverse frequency is divided by its own.
    build.config()["rope_scaling"] = {
        {"rope_type", "longrope"}, {"short_factor", factors},
        {"long_factor", factors},  {"attention_factor", 1.0},
        {"factor", 1.0},           {"original_max_position_embeddings", build.config()["max_position_embeddings"]}};
}

/// rope_scaling of the keys; true if there is any.
bool read_scaling(ModelBuilder& build) {
    // The oldest files have the linear factor alone, and llama.cpp takes a factor without a type as linear.
    const double old_factor = build.number("rope.scale_linear", 0);
    const double factor = build.number("rope.scaling.factor", old_factor);
    const std::string type = build.text("rope.scaling.type", factor == 0 ? "none" : "linear");
    if (type != "yarn") build.ignore("rope.scaling.original_context_length");
    if (type == "none" || (type == "linear" && (factor == 0 || factor == 1))) return false;
    if (factor < 0) build.mismatch("rope.scaling.factor", "expected a number above 0");
    if (type == "linear") {
        build.config()["rope_scaling"] = {{"rope_type", "linear"}, {"factor", factor}};
        return true;
    }
    if (type != "yarn")
        build.unsupported("rope.scaling.type", "expected none, linear or yarn (longrope with its factors in phi3)");
    if (factor == 0) build.mismatch("rope.scaling.factor", "expected a number above 0");
    nlohmann::json scaling = {{"rope_type", "yarn"}, {"factor", factor}};
    if (const std::int64_t length = build.size("rope.scaling.original_context_length", 0); length != 0)
        scaling["original_max_position_embeddings"] = length;
    for (const auto& [name, ours] :
         {std::pair("rope.scaling.yarn_beta_fast", "beta_fast"), std::pair("rope.scaling.yarn_beta_slow", "beta_slow")})
        if (build.has(name)) scaling[ours] = build.number(name, 0);
    if (build.number("rope.scaling.yarn_ext_factor", 1) != 1)
        build.unsupported("rope.scaling.yarn_ext_factor", "expected 1");
    // llama.cpp multiplies the factor by YaRN's own.
    const double attention = build.number("rope.scaling.attn_factor", 1);
    if (attention != 1) scaling["attention_factor"] = attention * (0.1 * std::log(std::max(factor, 1.0)) + 1);
    build.config()["rope_scaling"] = scaling;
    return true;
}

}  // namespace

std::int64_t read_vocabulary(ModelBuilder& build) {
    const Tensor* table = build.find("token_embd.weight");
    if (table == nullptr || table->shape.size() != 2)
        build.refuse_tensor("token_embd.weight", "expected an embedding of two dimensions", "found none");
    const std::int64_t size = build.size("vocab_size", table->shape[0]);
    build.config()["vocab_size"] = size;
    return size;
}

std::int64_t uniform(ModelBuilder& build, const std::string& name) {
    const std::vector<std::int64_t> all = build.each_layer(name, 1);
    if (std::any_of(all.begin(), all.end(), [&](std::int64_t one) { return one != all.front(); }))
        build.unsupported(name, "expected one number for all layers");
    return all.front();
}

void read_rms_norm(ModelBuilder& build, const std::string& name) {
    if (build.has("attention.layer_norm_rms_epsilon"))
        build.config()[name] = build.number("attention.layer_norm_rms_epsilon", 0);
}

void read_layer_norm(ModelBuilder& build, const std::string& name) {
    if (build.has("attention.layer_norm_epsilon"))
        build.config()[name] = build.number("attention.layer_norm_epsilon", 0);
}

void check_heads(ModelBuilder& build, const DecoderSizes& sizes) {
    if (sizes.heads % sizes.key_value_heads != 0)
        build.mismatch("attention.head_count_kv", "expected a divisor of " + std::to_string(sizes.heads) + " heads");
    if (sizes.heads > kLargestSize / sizes.head_size)
        build.mismatch("attention.head_count", "expected heads of at most 2^31 numbers together");
}

DecoderSizes read_decoder(ModelBuilder& build, const std::string& model_type, const std::string& class_name) {
    nlohmann::json& config = build.config();
    DecoderSizes sizes;
    sizes.hidden = build.size("embedding_length");
    sizes.heads = uniform(build, "attention.head_count");
    sizes.key_value_heads =
        build.has("attention.head_count_kv") ? uniform(build, "attention.head_count_kv") : sizes.heads;
    if (sizes.hidden % sizes.heads != 0 && !build.has("attention.key_length"))
        build.mismatch("attention.head_count",
                       "expected a divisor of embedding_length " + std::to_string(sizes.hidden));
    sizes.head_size = build.size("attention.key_length", sizes.hidden / sizes.heads);
    if (build.size("attention.value_length", sizes.head_size) != sizes.head_size)
        build.unsupported("attention.value_length", "expected " + std::to_string(sizes.head_size) + ", as of keys");
    check_heads(build, sizes);
    config["model_type"] = model_type;
    config["architectures"] = {class_name};
    config["hidden_size"] = sizes.hidden;
    config["num_hidden_layers"] = build.layers();
    config["num_attention_heads"] = sizes.heads;
    config["num_key_value_heads"] = sizes.key_value_heads;
    config["head_dim"] = sizes.head_size;
    config["max_position_embeddings"] = build.size("context_length");
    config["tie_word_embeddings"] = !build.has_tensor("output.weight");
    if (build.has("feed_forward_length")) config["intermediate_size"] = uniform(build, "feed_forward_length");
    read_vocabulary(build);
    return sizes;
}

std::int64_t read_rope(ModelBuilder& build, std::int64_t head_size) {
    build.config()["rope_theta"] = build.number("rope.freq_base", 10000.0);
    const std::int64_t rotated = build.size("rope.dimension_count", head_size);
    if (rotated > head_size || rotated % 2 != 0)
        build.mismatch("rope.dimension_count", "expected an even number up to " + std::to_string(head_size));
    read_factor_tensor(build, rotated, read_scaling(build));
    return rotated;
}

void read_whole_rope(ModelBuilder& build, std::int64_t head_size) {
    if (read_rope(build, head_size) != head_size)
        build.unsupported("rope.dimension_count", "expected " + std::to_string(head_size) + ", the head's size");
}

void set_partial_rope(ModelBuilder& build, std::int64_t rotated, std::int64_t head_size, const std::string& name) {
    double part = static_cast<double>(rotated) / static_cast<double>(head_size);
    // Readers multiply and cut off.
    if (static_cast<std::int64_t>(part * static_cast<double>(head_size)) < rotated) part = std::nextafter(part, 2.0);
    build.config()[name] = part;
}

void read_partial_rope(ModelBuilder& build, std::int64_t head_size, const std::string& name) {
    set_partial_rope(build, read_rope(build, head_size), head_size, name);
}

bool read_window(ModelBuilder& build, bool (*slides)(std::int64_t layer)) {
    const std::int64_t window = build.size("attention.sliding_window", 0);
    const std::string pattern_key = "attention.sliding_window_pattern";
    std::vector<std::int64_t> pattern;
    if (build.has(pattern_key)) pattern = build.each_layer(pattern_key, 0);
    build.config()["sliding_window"] = window == 0 ? nlohmann::json() : nlohmann::json(window);
    if (window == 0) return false;
    if (!pattern.empty() && !build.is_list(pattern_key)) {
        // A number: every such layer sees everything; 0: no layer does.
        const std::int64_t every = pattern.front();
        for (std::size_t i = 0; i < pattern.size(); ++i)
            pattern[i] = every == 0 || (static_cast<std::int64_t>(i) + 1) % every != 0 ? 1 : 0;
    } else if (pattern.empty() && slides != nullptr) {
        for (std::int64_t layer = 0; layer < build.layers(); ++layer) pattern.push_back(slides(layer) ? 1 : 0);
    }
    if (pattern.empty()) return true;
    nlohmann::json types = nlohmann::json::array();
    for (const std::int64_t one : pattern) types.push_back(one != 0 ? "sliding_attention" : "full_attention");
    build.config()["layer_types"] = std::move(types);
    return true;
}

std::string layer_stem(std::int64_t layer) {
    return "model.layers." + std::to_string(layer) + ".";
}

void name_ends(ModelBuilder& build, const Change& of_norm, const std::string& norm) {
    build.module("token_embd", "model.embed_tokens");
    build.module("output_norm", norm, of_norm);
    build.module("output", "lm_head");
}

void split_rows(ModelBuilder& build, const std::string& stored, const std::vector<RowPart>& parts) {
    std::int64_t all = 0;
    for (const RowPart& part : parts) all += part.rows;
    for (const char* end : {".weight", ".bias"}) {
        const std::string whole = stored + end;
        if (!build.has_tensor(whole)) continue;
        std::int64_t first = 0;
        for (const RowPart& part : parts) {
            const PackedPointer packed = end == std::string(".bias") ? build.take(whole) : build.take_scaled(whole);
            build.put(part.name + end, build.changed(whole, packed, [&](const PackedPointer& found) {
                if (found->shape().empty() || found->shape().front() != all) throw std::invalid_argument("other rows");
                const PackedPointer rows = rows_of(found, first, part.rows);
                return part.change ? part.change(rows) : rows;
            }));
            first += part.rows;
        }
    }
}

void name_attention(ModelBuilder& build, const DecoderSizes& sizes, std::int64_t layer, const Change& of_query,
                    const Change& of_key) {
    const std::string from = block(layer) + "attn_", to = layer_stem(layer) + "self_attn.";
    split_rows(build, from + "qkv",
               {{to + "q_proj", sizes.heads * sizes.head_size, of_query},
                {to + "k_proj", sizes.key_value_heads * sizes.head_size, of_key},
                {to + "v_proj", sizes.key_value_heads * sizes.head_size}});
    build.module(from + "q", to + "q_proj", of_query);
    build.module(from + "k", to + "k_proj", of_key);
    build.module(from + "v", to + "v_proj");
    build.module(from + "output", to + "o_proj");
    build.leave(block(layer) + "attn_rot_embd.weight");  // frequencies of the oldest files
}

void name_feed_forward(ModelBuilder& build, std::int64_t layer) {
    for (const char* part : {"gate", "up", "down"})
        build.module(block(layer) + "ffn_" + part, layer_stem(layer) + "mlp." + part + "_proj");
}

void name_head_norms(ModelBuilder& build, std::int64_t layer, const Change& change) {
    build.module(block(layer) + "attn_q_norm", layer_stem(layer) + "self_attn.q_norm", change);
    build.module(block(layer) + "attn_k_norm", layer_stem(layer) + "self_attn.k_norm", change);
}

void read_experts(ModelBuilder& build, const std::string& count_key) {
    build.config()[count_key] = build.size("expert_count");
    build.config()["num_experts_per_tok"] = build.size("expert_used_count");
    if (build.size("expert_gating_func", 1) != 1) build.unsupported("expert_gating_func", "expected 1 (softmax)");
}

bool has_experts(const ModelBuilder& build, std::int64_t layer) {
    return build.has_tensor(block(layer) + "ffn_gate_inp.weight");
}

PackedPointer stacked_gate_up(const PackedPointer& gate, const PackedPointer& up) {
    if (gate->shape() != up->shape() || gate->shape().size() != 3)
        throw std::invalid_argument("no stack of matrices like the gates'");
    const std::int64_t inner = gate->shape()[1];
    return with_rows({gate, up}, {gate->shape()[0], 2 * inner, gate->shape()[2]}, [inner](std::int64_t row) {
        const std::int64_t expert = row / (2 * inner), place = row % (2 * inner);
        return SourceRow{place < inner ? 0U : 1U, expert * inner + place % inner};
    });
}

void name_experts(ModelBuilder& build, std::int64_t layer, const std::string& router, const std::string& stem) {
    build.module(block(layer) + "ffn_gate_inp", layer_stem(layer) + router);
    const std::string fused = block(layer) + "ffn_gate_up_exps.weight";
    const std::string gate_up = layer_stem(layer) + stem + "gate_up_proj";
    if (build.has_tensor(fused)) {
        build.put(gate_up, build.take_scaled(fused));
    } else {
        const PackedPointer gate = take_experts(build, layer, "ffn_gate");
        const std::string name = block(layer) + "ffn_up_exps.weight";
        build.put(gate_up, build.changed(name, take_experts(build, layer, "ffn_up"),
                                         [&gate](const PackedPointer& up) { return stacked_gate_up(gate, up); }));
    }
    build.put(layer_stem(layer) + stem + "down_proj", take_experts(build, layer, "ffn_down"));
}

void name_shared_expert(ModelBuilder& build, std::int64_t layer) {
    const std::string to = layer_stem(layer) + "mlp.shared_expert";
    for (const char* part : {"gate", "up", "down"})
        build.module(block(layer) + "ffn_" + part + "_shexp", to + "." + part + "_proj");
    build.module(block(layer) + "ffn_gate_inp_shexp", to + "_gate", [](const PackedPointer& packed) {
        return with_shape(packed, {1, packed->columns()});
    });
}

}  // namespace headscope::checkpoint::gguf
