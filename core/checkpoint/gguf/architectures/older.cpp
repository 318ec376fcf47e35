// SPDX-License-Identifier: GPL-3.0-or-later
// GPT-2, GPT-NeoX, BLOOM, Falcon and MPT, whose queries, keys and values are one matrix.
#include <stdexcept>

#include "core/checkpoint/gguf/architectures/architecture.h"
#include "core/checkpoint/gguf/architectures/decoder_parts.h"

namespace headscope::checkpoint::gguf {
namespace {

/// All queries, keys and values to those of one key head after the other: its queries, itself, its value.
Change by_groups(const DecoderSizes& sizes) {
    return [sizes](const PackedPointer& packed) {
        const std::int64_t size = sizes.head_size, groups = sizes.key_value_heads;
        const std::int64_t queries = sizes.heads / groups, all = (queries + 2) * size;
        if (packed->shape().empty() || packed->shape().front() != groups * all || sizes.heads % groups != 0)
            throw std::invalid_argument("not the rows of query, key and value");
        return reordered(packed, [=](std::int64_t row) {
            const std::int64_t group = row / all, place = row % all, part = place / size;
            if (part < queries) return group * queries * size + place;
            return (sizes.heads + (part - queries) * groups + group) * size + place % size;
        });
    };
}

struct OldNames {
    std::string layers, first_norm, query_key_value, output, second_norm, up, down;
};

void name_old_layers(ModelBuilder& build, const OldNames& names, const Change& of_rows, bool transposed) {
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        const std::string from = block(layer), to = names.layers + std::to_string(layer) + ".";
        build.module(from + "attn_norm", to + names.first_norm);
        build.module(from + "attn_qkv", to + names.query_key_value, of_rows, transposed);
        build.module(from + "attn_output", to + names.output, nullptr, transposed);
        build.module(from + "ffn_norm", to + names.second_norm);
        build.module(from + "ffn_up", to + names.up, nullptr, transposed);
        build.module(from + "ffn_down", to + names.down, nullptr, transposed);
    }
}

/// The feed-forward's size of families that compute it.
void expect_feed_forward(ModelBuilder& build, std::int64_t size) {
    if (uniform(build, "feed_forward_length") != size)
        build.unsupported("feed_forward_length", "expected " + std::to_string(size));
    build.config().erase("intermediate_size");
}

}  // namespace

void build_gpt2(ModelBuilder& build) {
    const DecoderSizes sizes = read_decoder(build, "gpt2", "GPT2LMHeadModel");
    nlohmann::json& config = build.config();
    if (sizes.key_value_heads != sizes.heads || sizes.head_size * sizes.heads != sizes.hidden)
        build.unsupported("attention.head_count", "expected heads that are alike and together as wide as the model");
    for (const auto& [from, to] :
         {std::pair("hidden_size", "n_embd"), std::pair("num_hidden_layers", "n_layer"),
          std::pair("num_attention_heads", "n_head"), std::pair("intermediate_size", "n_inner"),
          std::pair("max_position_embeddings", "n_positions")}) {
        config[to] = config[from];
        config.erase(from);
    }
    config.erase("num_key_value_heads");
    config.erase("head_dim");
    read_layer_norm(build, "layer_norm_epsilon");
    build.module("token_embd", "transformer.wte");
    build.module("position_embd", "transformer.wpe");
    build.module("output_norm", "transformer.ln_f");
    build.module("output", "lm_head");
    name_old_layers(build, {"transformer.h.", "ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"},
                    nullptr, true);
}

void build_gpt_neox(ModelBuilder& build) {
    const DecoderSizes sizes = read_decoder(build, "gpt_neox", "GPTNeoXForCausalLM");
    read_layer_norm(build);
    const std::int64_t rotated = read_rope(build, sizes.head_size);
    set_partial_rope(build, rotated, sizes.head_size, "rotary_pct");
    build.config()["rotary_emb_base"] = build.config()["rope_theta"];
    build.config().erase("rope_theta");
    build.config()["use_parallel_residual"] = build.flag("use_parallel_residual", true);
    build.config()["attention_bias"] = build.has_in_layers("attn_qkv.bias");
    build.module("token_embd", "gpt_neox.embed_in");
    build.module("output_norm", "gpt_neox.final_layer_norm");
    build.module("output", "lm_head");
    name_old_layers(build,
                    {"gpt_neox.layers.", "input_layernorm", "attention.query_key_value", "attention.dense",
                     "post_attention_layernorm", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"},
                    by_groups(sizes), false);
}

void build_bloom(ModelBuilder& build) {
    const DecoderSizes sizes = read_decoder(build, "bloom", "BloomForCausalLM");
    nlohmann::json& config = build.config();
    expect_feed_forward(build, 4 * sizes.hidden);
    config["n_layer"] = config["num_hidden_layers"];
    config["n_head"] = config["num_attention_heads"];
    config["seq_length"] = config["max_position_embeddings"];
    for (const char* name :
         {"num_hidden_layers", "num_attention_heads", "max_position_embeddings", "num_key_value_heads", "head_dim"})
        config.erase(name);
    read_layer_norm(build, "layer_norm_epsilon");
    build.module("token_embd", "transformer.word_embeddings");
    build.module("token_embd_norm", "transformer.word_embeddings_layernorm");
    build.module("output_norm", "transformer.ln_f");
    build.module("output", "lm_head");
    name_old_layers(build,
                    {"transformer.h.", "input_layernorm", "self_attention.query_key_value", "self_attention.dense",
                     "post_attention_layernorm", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"},
                    by_groups(sizes), false);
}

void build_falcon(ModelBuilder& build) {
    const DecoderSizes sizes = read_decoder(build, "falcon", "FalconForCausalLM");
    nlohmann::json& config = build.config();
    // Two norms side by side: attn_norm_2 is attention's, attn_norm the feed-forward's.
    const bool two_norms = build.has_in_layers("attn_norm_2.weight");
    const bool grouped = two_norms || (sizes.key_value_heads != 1 && sizes.key_value_heads != sizes.heads);
    config["num_kv_heads"] = sizes.key_value_heads;
    config["ffn_hidden_size"] = uniform(build, "feed_forward_length");
    for (const char* name : {"num_key_value_heads", "intermediate_size", "head_dim"}) config.erase(name);
    if (sizes.head_size * sizes.heads != sizes.hidden)
        build.unsupported("attention.key_length", "expected heads that are together as wide as the model");
    const std::string layout = build.text("tensor_data_layout", "jploski");
    if (layout != "jploski") build.unsupported("tensor_data_layout", "expected jploski");
    config["new_decoder_architecture"] = grouped;
    config["multi_query"] = !grouped && sizes.key_value_heads == 1;
    config["parallel_attn"] = true;
    config["num_ln_in_parallel_attn"] = two_norms ? 2 : 1;
    config["alibi"] = false;
    config["bias"] = build.has_in_layers("attn_qkv.bias");
    read_layer_norm(build, "layer_norm_epsilon");
    read_whole_rope(build, sizes.head_size);
    build.module("token_embd", "transformer.word_embeddings");
    build.module("output_norm", "transformer.ln_f");
    build.module("output", "lm_head");
    name_old_layers(build,
                    {"transformer.h.", two_norms ? "ln_mlp" : "input_layernorm", "self_attention.query_key_value",
                     "self_attention.dense", "post_attention_layernorm", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"},
                    by_groups(sizes), false);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer)
        build.module(block(layer) + "attn_norm_2", "transformer.h." + std::to_string(layer) + ".ln_attn");
}

void build_mpt(ModelBuilder& build) {
    constexpr double kAlibi = 8;  // MPT's, the slopes' largest exponent
    const DecoderSizes sizes = read_decoder(build, "mpt", "MptForCausalLM");
    nlohmann::json& config = build.config();
    expect_feed_forward(build, 4 * sizes.hidden);
    if (sizes.key_value_heads != sizes.heads || sizes.head_size * sizes.heads != sizes.hidden)
        build.unsupported("attention.head_count", "expected heads that are alike and together as wide as the model");
    if (build.number("attention.max_alibi_bias", 0) != kAlibi)
        build.unsupported("attention.max_alibi_bias", "expected 8");
    const double clip = build.number("attention.clamp_kqv", 0);
    config["attn_config"] = {{"alibi", true}};
    if (clip != 0) config["attn_config"]["clip_qkv"] = clip;
    config["d_model"] = config["hidden_size"];
    config["n_layers"] = config["num_hidden_layers"];
    config["n_heads"] = config["num_attention_heads"];
    config["max_seq_len"] = config["max_position_embeddings"];
    for (const char* name : {"hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings",
                             "num_key_value_heads", "head_dim"})
        config.erase(name);
    read_layer_norm(build, "layer_norm_epsilon");
    build.module("token_embd", "transformer.wte");
    build.module("output_norm", "transformer.norm_f");
    build.module("output", "lm_head");
    name_old_layers(
        build,
        {"transformer.blocks.", "norm_1", "attn.Wqkv", "attn.out_proj", "norm_2", "ffn.up_proj", "ffn.down_proj"},
        nullptr, false);
}

}  // namespace headscope::checkpoint::gguf
