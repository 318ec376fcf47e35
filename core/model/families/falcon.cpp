// SPDX-License-Identifier: GPL-3.0-or-later
// Falcon (Almazrouei et al., arXiv 2311.16867) in its four layouts: 7B, one key head, attention and feed-forward side
// by side after one norm; 40B, groups of heads and a norm for each side; 11B, groups and one norm; RW, ALiBi, as many
// key heads as queries, one part after the other.
#include <cmath>

#include "core/model/families/families.h"

namespace headscope::model {
namespace {

SizeKeys keys() {
    SizeKeys keys;
    keys.key_value_heads = "num_kv_heads";
    keys.feed_forward = "ffn_hidden_size";
    return keys;
}

void read_layout(ModelConfig& config, const ConfigReader& reader) {
    const bool grouped = reader.boolean("new_decoder_architecture", false);
    // Nulls are false, absent keys true.
    config.parallel_residual = !reader.is_null("parallel_attn") && reader.boolean("parallel_attn", true);
    if (grouped && !config.parallel_residual)
        reader.unsupported("parallel_attn", "true beside new_decoder_architecture");
    const std::int64_t norms = reader.size("num_ln_in_parallel_attn", grouped ? 2 : 1);
    if (norms > (grouped ? 2 : 1)) {
        reader.unsupported("num_ln_in_parallel_attn",
                           grouped ? "1 or 2 norms" : "1, or none, without new_decoder_architecture");
    }
    config.parallel_norms = !config.parallel_residual || norms == 2;
    if (grouped) return;
    if (!reader.is_null("multi_query") && reader.boolean("multi_query", true)) {
        config.key_value_heads = 1;  // whatever num_kv_heads says
    } else if (config.key_value_heads != config.heads) {
        reader.unsupported(keys().key_value_heads, "as many as heads without multi_query and new_decoder_architecture");
    }
}

ModelConfig read(const ConfigReader& reader) {
    require_false(reader, "apply_residual_connection_post_layernorm");
    SizeKeys sizes = keys();
    sizes.hidden = present_key(reader, {"n_embed", "hidden_size"});
    ModelConfig config;
    read_sizes(config, reader, sizes, 4 * reader.size(sizes.hidden));
    if (config.head_size * config.heads != config.hidden)
        reader.refuse(sizes.head_size, sizes.hidden + " / " + sizes.heads);
    read_layout(config, reader);
    config.max_positions = reader.size(sizes.positions, 2048);
    if (reader.boolean("alibi", false)) {
        if (config.key_value_heads != config.heads)
            reader.unsupported("alibi", "false where there are fewer key heads than heads");
        config.positions = PositionKind::alibi;
        config.alibi_rounded = true;
        // transformers' eager attention adds it twice, and scales it with the scores.
        config.alibi_scale = 2.0 / std::sqrt(static_cast<double>(config.head_size));
    } else {
        config.positions = PositionKind::rotary;
        config.rope = read_rope(reader, config.max_positions, config.head_size);
        if (config.rope.type == "default") config.rope.partial = 1.0;  // the whole head, as Llama's
    }
    config.norm_epsilon = reader.positive("layer_norm_epsilon", 1e-5);
    config.activation = read_activation(reader, "activation", "gelu");
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = reader.boolean("bias", false);
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names;
    names.keys = keys();
    names.prefixes = {"transformer.", ""};
    names.token_embedding = "word_embeddings";
    names.layer = "h.{}.";
    const bool both = config.parallel_residual && config.parallel_norms;
    names.in_layer.input_norm = both ? "ln_attn" : "input_layernorm";
    if (config.parallel_norms) names.in_layer.feed_forward_norm = both ? "ln_mlp" : "post_attention_layernorm";
    names.in_layer.query_key_value = "self_attention.query_key_value";
    names.in_layer.fused_layout = config.key_value_heads == 1              ? FusedLayout::concatenated
                                  : config.key_value_heads == config.heads ? FusedLayout::by_head
                                                                           : FusedLayout::by_group;
    names.in_layer.output = "self_attention.dense";
    names.in_layer.up = "mlp.dense_h_to_4h";
    names.in_layer.down = "mlp.dense_4h_to_h";
    names.final_norm = "ln_f";
    names.head = "lm_head";
    names.buffers = {"rotary_emb.inv_freq", "maybe_rotary.inv_freq"};
    return names;
}

}  // namespace

const Family kFalcon{
    "falcon", {"falcon"}, "Falcon: parallel residual and few key heads, or ALiBi; layer norms", read, names};

}  // namespace headscope::model
