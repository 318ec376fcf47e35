// SPDX-License-Identifier: GPL-3.0-or-later
// Qwen3-Next and Qwen3.5: Gated DeltaNet on most layers, attention with a gate on the others. Norms are stored as 1 + w
// but the one of Gated DeltaNet.
#include <stdexcept>

#include "core/checkpoint/gguf/architectures/architecture.h"
#include "core/checkpoint/gguf/architectures/decoder_parts.h"

namespace headscope::checkpoint::gguf {
namespace {

struct DeltaSizes {
    std::int64_t key_heads = 0, heads = 0, key_size = 0, value_size = 0;
    std::int64_t per_key() const { return heads / key_heads; }
};

DeltaSizes read_delta(ModelBuilder& build) {
    DeltaSizes sizes;
    sizes.key_heads = build.size("ssm.group_count");
    sizes.heads = build.size("ssm.time_step_rank");
    sizes.key_size = build.size("ssm.state_size");
    const std::int64_t inner = build.size("ssm.inner_size");
    if (sizes.key_heads > kLargestSize / sizes.key_size)
        build.mismatch("ssm.group_count", "expected key heads of at most 2^31 numbers together");
    if (sizes.heads % sizes.key_heads != 0)
        build.mismatch("ssm.time_step_rank",
                       "expected a multiple of " + std::to_string(sizes.key_heads) + " key heads");
    if (inner % sizes.heads != 0)
        build.mismatch("ssm.inner_size", "expected a multiple of " + std::to_string(sizes.heads) + " heads");
    sizes.value_size = inner / sizes.heads;
    nlohmann::json& config = build.config();
    config["linear_num_key_heads"] = sizes.key_heads;
    config["linear_num_value_heads"] = sizes.heads;
    config["linear_key_head_dim"] = sizes.key_size;
    config["linear_value_head_dim"] = sizes.value_size;
    config["linear_conv_kernel_dim"] = build.size("ssm.conv_kernel");
    return sizes;
}

bool is_linear(const ModelBuilder& build, std::int64_t layer) {
    return build.has_tensor(block(layer) + "ssm_a");
}

/// Layers by their tensors, which the keys must agree with.
void read_layer_types(ModelBuilder& build, std::int64_t layers) {
    const std::string interval = "full_attention_interval", list = "attention.recurrent_layers";
    const bool has_interval = build.has(interval);
    const std::int64_t every = build.size(interval, 4);
    const std::vector<std::int64_t> listed = build.has(list) ? build.each_layer(list, 0) : std::vector<std::int64_t>();
    nlohmann::json types = nlohmann::json::array();
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        const bool linear = is_linear(build, layer);
        const std::string expected = "expected layer " + std::to_string(layer) + (linear ? " with" : " without") +
                                     " Gated DeltaNet, as its tensors are";
        if (has_interval && linear != ((layer + 1) % every != 0)) build.mismatch(interval, expected);
        if (!listed.empty() && linear != (listed[static_cast<std::size_t>(layer)] != 0)) build.mismatch(list, expected);
        types.push_back(linear ? "linear_attention" : "full_attention");
    }
    build.config()["layer_types"] = types;
}

/// head_count_kv may be 0 in layers without attention.
std::int64_t key_value_heads(ModelBuilder& build) {
    std::int64_t heads = 0;
    for (const std::int64_t one : build.each_layer("attention.head_count_kv", 0)) {
        if (one != 0 && heads != 0 && one != heads)
            build.unsupported("attention.head_count_kv", "expected one number for all layers with attention");
        if (one != 0) heads = one;
    }
    if (heads == 0) build.mismatch("attention.head_count_kv", "expected heads in some layer");
    return heads;
}

/// Sizes and keys of both; `layers` without those that predict further tokens.
DeltaSizes read_hybrid(ModelBuilder& build, std::int64_t layers, const char* model_type, const char* class_name) {
    nlohmann::json& config = build.config();
    config["model_type"] = model_type;
    config["architectures"] = {class_name};
    config["hidden_size"] = build.size("embedding_length");
    config["num_hidden_layers"] = layers;
    config["num_attention_heads"] = uniform(build, "attention.head_count");
    config["num_key_value_heads"] = key_value_heads(build);
    const std::int64_t head_size = build.size("attention.key_length");
    if (build.size("attention.value_length", head_size) != head_size)
        build.unsupported("attention.value_length", "expected " + std::to_string(head_size) + ", as of keys");
    check_heads(build,
                {config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"], head_size});
    config["head_dim"] = head_size;
    config["max_position_embeddings"] = build.size("context_length");
    config["tie_word_embeddings"] = !build.has_tensor("output.weight");
    if (const std::int64_t inner = build.size("feed_forward_length", 0); inner != 0)
        config["intermediate_size"] = inner;
    read_vocabulary(build);
    read_rms_norm(build);
    read_partial_rope(build, head_size);
    read_layer_types(build, layers);
    return read_delta(build);
}

void read_hybrid_experts(ModelBuilder& build) {
    read_experts(build, "num_experts");
    build.config()["moe_intermediate_size"] = build.size("expert_feed_forward_length");
    build.config()["shared_expert_intermediate_size"] = build.size("expert_shared_feed_forward_length");
    build.config()["norm_topk_prob"] = build.flag("expert_weights_norm", true);
}

/// [channels, taps] as a convolution's.
PackedPointer as_convolution(const PackedPointer& packed) {
    return with_shape(packed, {packed->rows(), 1, packed->columns()});
}

/// Key head by key head its query, itself, its values and their gates, of all of each.
PackedPointer by_key_head(const PackedPointer& packed, const PackedPointer& gates, const DeltaSizes& sizes) {
    const std::int64_t keys = sizes.key_heads * sizes.key_size, values = sizes.heads * sizes.value_size;
    if (packed->rows() != 2 * keys + values || gates->rows() != values || packed->columns() != gates->columns())
        throw std::invalid_argument("not the heads of the keys");
    const std::int64_t key = sizes.key_size, value = sizes.per_key() * sizes.value_size;
    return with_rows({packed, gates}, {2 * keys + 2 * values, packed->columns()}, [=](std::int64_t row) {
        const std::int64_t head = row / (2 * key + 2 * value), place = row % (2 * key + 2 * value);
        if (place < key) return SourceRow{0, head * key + place};
        if (place < 2 * key) return SourceRow{0, keys + head * key + place - key};
        if (place < 2 * key + value) return SourceRow{0, 2 * keys + head * value + place - 2 * key};
        return SourceRow{1, head * value + place - 2 * key - value};
    });
}

void name_delta_shared(ModelBuilder& build, std::int64_t layer, const Change& of_heads, const Change& of_taps) {
    const std::string from = block(layer), to = layer_stem(layer) + "linear_attn.";
    build.tensor(from + "ssm_conv1d.weight", to + "conv1d.weight", of_taps);
    build.tensor(from + "ssm_a", to + "A_log", [&](const PackedPointer& packed) {
        const PackedPointer rates = with_shape(log_of_minus(packed), {packed->rows() * packed->columns()});
        return of_heads ? of_heads(rates) : rates;
    });
    build.tensor(from + "ssm_dt.bias", to + "dt_bias", of_heads);
    build.module(from + "ssm_norm", to + "norm");
}

void name_next_delta(ModelBuilder& build, std::int64_t layer, const DeltaSizes& sizes) {
    const std::string from = block(layer), to = layer_stem(layer) + "linear_attn.";
    name_delta_shared(build, layer, nullptr, as_convolution);
    build.module(from + "ssm_in", to + "in_proj_qkvz");
    build.module(from + "ssm_ba", to + "in_proj_ba");
    build.module(from + "ssm_out", to + "out_proj");
    const std::string stored = from + "attn_qkv.weight";
    if (!build.has_tensor(stored)) return;
    const PackedPointer gates = build.take_scaled(from + "attn_gate.weight");
    build.put(to + "in_proj_qkvz.weight",
              build.changed(stored, build.take_scaled(stored),
                            [&](const PackedPointer& packed) { return by_key_head(packed, gates, sizes); }));
}

/// Reorders values and the like, whose heads the file has with the key head's number fastest.
Change grouped_rows(const DeltaSizes& sizes, std::int64_t size, std::int64_t offset) {
    return [=](const PackedPointer& packed) {
        const std::int64_t rows = packed->shape().empty() ? 0 : packed->shape().front();
        if (rows != offset + sizes.heads * size) throw std::invalid_argument("not the heads of the keys");
        const std::int64_t per_key = sizes.per_key(), key_heads = sizes.key_heads;
        return reordered(packed, [=](std::int64_t row) {
            if (row < offset) return row;
            const std::int64_t head = (row - offset) / size;
            return offset + ((head % per_key) * key_heads + head / per_key) * size + (row - offset) % size;
        });
    };
}

PackedPointer grouped_columns(const PackedPointer& packed, const DeltaSizes& sizes) {
    if (packed->columns() != sizes.heads * sizes.value_size) throw std::invalid_argument("not the heads of the keys");
    std::vector<std::int64_t> columns;
    for (std::int64_t head = 0; head < sizes.heads; ++head) {
        const std::int64_t stored = (head % sizes.per_key()) * sizes.key_heads + head / sizes.per_key();
        for (std::int64_t i = 0; i < sizes.value_size; ++i) columns.push_back(stored * sizes.value_size + i);
    }
    return with_columns(packed, std::move(columns));
}

void name_35_delta(ModelBuilder& build, std::int64_t layer, const DeltaSizes& sizes) {
    const std::string from = block(layer), to = layer_stem(layer) + "linear_attn.";
    const std::int64_t query_and_key = 2 * sizes.key_heads * sizes.key_size;
    const Change of_heads = grouped_rows(sizes, 1, 0);
    const Change of_values = grouped_rows(sizes, sizes.value_size, 0);
    const Change of_all = grouped_rows(sizes, sizes.value_size, query_and_key);
    name_delta_shared(build, layer, of_heads,
                      [&](const PackedPointer& packed) { return as_convolution(of_all(packed)); });
    build.module(from + "attn_qkv", to + "in_proj_qkv", of_all);
    build.module(from + "attn_gate", to + "in_proj_z", of_values);
    build.module(from + "ssm_beta", to + "in_proj_b", of_heads);
    build.module(from + "ssm_alpha", to + "in_proj_a", of_heads);
    build.module(from + "ssm_out", to + "out_proj",
                 [&](const PackedPointer& packed) { return grouped_columns(packed, sizes); });
}

void name_hybrid_layer(ModelBuilder& build, std::int64_t layer) {
    build.module(block(layer) + "attn_norm", layer_stem(layer) + "input_layernorm", minus_one);
    build.module(block(layer) + "post_attention_norm", layer_stem(layer) + "post_attention_layernorm", minus_one);
    if (!is_linear(build, layer)) {
        // Queries and their gates, head by head, are one matrix, as if of twice as many heads.
        const nlohmann::json& config = build.config();
        const std::int64_t heads = config["num_attention_heads"], groups = config["num_key_value_heads"];
        name_attention(build, {config["hidden_size"], 2 * heads, groups, config["head_dim"]}, layer);
        name_head_norms(build, layer, minus_one);
    }
    if (has_experts(build, layer)) {
        name_experts(build, layer, "mlp.gate", "mlp.experts.");
        name_shared_expert(build, layer);
    } else {
        name_feed_forward(build, layer);
    }
}

void build_35(ModelBuilder& build, bool experts) {
    // The block that predicts further tokens is counted as a layer, and not read.
    const std::int64_t further = build.size("nextn_predict_layers", 0);
    if (further >= build.layers()) build.mismatch("nextn_predict_layers", "expected fewer than block_count");
    const std::int64_t layers = build.layers() - further;
    const DeltaSizes sizes = experts ? read_hybrid(build, layers, "qwen3_5_moe_text", "Qwen3_5MoeForCausalLM")
                                     : read_hybrid(build, layers, "qwen3_5_text", "Qwen3_5ForCausalLM");
    build.ignore("rope.dimension_sections");  // of images: a text's token has one position
    if (experts) read_hybrid_experts(build);
    name_ends(build, minus_one);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        name_hybrid_layer(build, layer);
        if (is_linear(build, layer)) name_35_delta(build, layer, sizes);
    }
    for (std::int64_t layer = layers; layer < build.layers(); ++layer) build.leave_all(block(layer));
}

}  // namespace

void build_qwen3_next(ModelBuilder& build) {
    const DeltaSizes sizes = read_hybrid(build, build.layers(), "qwen3_next", "Qwen3NextForCausalLM");
    read_hybrid_experts(build);
    nlohmann::json plain = nlohmann::json::array();
    name_ends(build, minus_one);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        if (!has_experts(build, layer)) plain.push_back(layer);
        name_hybrid_layer(build, layer);
        if (is_linear(build, layer)) name_next_delta(build, layer, sizes);
    }
    build.config()["mlp_only_layers"] = plain;
    build.config()["decoder_sparse_step"] = 1;
}

void build_qwen35(ModelBuilder& build) {
    build_35(build, false);
}

void build_qwen35_experts(ModelBuilder& build) {
    build_35(build, true);
}

}  // namespace headscope::checkpoint::gguf
