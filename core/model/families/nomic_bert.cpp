// SPDX-License-Identifier: GPL-3.0-or-later
// NomicBERT (Nussbaum et al., arXiv 2402.01613) as transformers 5.23 computes it: BERT with rotary positions, a gated
// feed-forward and no biases in its layers.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

/// The hub's files have GPT-2's keys, for code of their own. transformers reads none of them, so that each has to say
/// what it computes all the same.
void refuse_other_keys(const ConfigReader& reader, const ModelConfig& config) {
    const auto same = [&reader](const char* key, double value, const std::string& expected) {
        if (reader.number(key, value) != value)
            reader.unsupported(key, expected + ", which is what transformers computes with");
    };
    const auto count = [&same](const char* key, std::int64_t value, const std::string& expected) {
        same(key, static_cast<double>(value), expected + " (" + std::to_string(value) + ")");
    };
    count("n_embd", config.hidden, "hidden_size");
    count("n_layer", config.layers, "num_hidden_layers");
    count("n_head", config.heads, "num_attention_heads");
    count("n_inner", config.feed_forward, "intermediate_size");
    count("moe_every_n_layers", 0, "none");
    same("rotary_emb_base", config.rope.theta, "rope_theta");
    same("rotary_emb_fraction", 1.0, "1");
    same("layer_norm_epsilon", config.norm_epsilon, "layer_norm_eps");
    for (const char* key : {"qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "prenorm", "parallel_block",
                            "use_rms_norm", "causal", "rotary_emb_interleaved", "scale_attn_by_inverse_layer_idx"})
        require_false(reader, key);
    if (!reader.boolean("scale_attn_weights", true)) reader.unsupported("scale_attn_weights", "true");
    for (const char* key : {"rotary_emb_scale_base", "rotary_scaling_factor"})
        if (reader.has(key)) reader.unsupported(key, "null");
    if (reader.text("activation_function", "swiglu") != "swiglu") reader.unsupported("activation_function", "swiglu");
}

ModelConfig read(const ConfigReader& reader) {
    SizeKeys keys;
    keys.key_value_heads = keys.heads;
    SizeDefaults sizes;
    sizes.vocabulary = 30528;
    sizes.hidden = 768;
    sizes.layers = sizes.heads = 12;
    sizes.feed_forward = 3072;
    ModelConfig config;
    read_sizes(config, reader, keys, sizes);
    config.max_positions = reader.size(keys.positions, 2048);
    config.token_types = reader.size(keys.token_types, 2);
    config.positions = PositionKind::rotary;
    RopeDefaults rope;
    rope.theta = 1000.0;
    config.rope = read_rope(reader, config.max_positions, config.head_size, rope);
    if (config.rope.type == "default") config.rope.partial = 1.0;  // as read_llama has it
    config.causal = config.pre_norm = config.final_norm = false;
    config.embedding_norm = true;
    config.norm_epsilon = reader.positive("layer_norm_eps", 1e-12);
    config.activation = read_activation(reader, "hidden_act", "silu");
    config.gated_feed_forward = true;
    config.head_transform = config.head_bias = true;
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    refuse_other_keys(reader, config);
    read_class_head(config, reader);
    return config;
}

/// As the hub has them, and as transformers writes them by default.
TensorNames names(const ModelConfig& config) {
    TensorNames names;
    names.keys.key_value_heads = names.keys.heads;
    names.prefixes = {"nomic_bert.", ""};
    names.token_embedding = "embeddings.word_embeddings";
    names.token_type_embedding = "embeddings.token_type_embeddings";
    names.head = "cls.predictions.decoder";
    names.head_bias = {"cls.predictions.decoder.bias", "cls.predictions.bias"};
    names.head_transform = "cls.predictions.transform.dense";
    names.head_transform_norm = "cls.predictions.transform.layer_norm";
    name_class_head(names, config, "nomic_bert.pooler.dense");
    names.buffers = {"rotary_emb.inv_freq"};
    TensorNames own = names;
    names.embedding_norm = "emb_ln";
    names.layer = "encoder.layers.{}.";
    names.in_layer.query_key_value = "attn.Wqkv";
    names.in_layer.output = "attn.out_proj";
    names.in_layer.input_norm = "norm1";
    names.in_layer.gate = "mlp.fc12";
    names.in_layer.up = "mlp.fc11";
    names.in_layer.down = "mlp.fc2";
    names.in_layer.feed_forward_norm = "norm2";
    own.embedding_norm = "embeddings.LayerNorm";
    own.layer = "layers.{}.";
    own.in_layer.query = "self_attn.q_proj";
    own.in_layer.key = "self_attn.k_proj";
    own.in_layer.value = "self_attn.v_proj";
    own.in_layer.output = "self_attn.o_proj";
    own.in_layer.input_norm = "post_attention_layernorm";
    own.in_layer.gate = "mlp.gate_proj";
    own.in_layer.up = "mlp.up_proj";
    own.in_layer.down = "mlp.down_proj";
    own.in_layer.feed_forward_norm = "post_mlp_layernorm";
    names.others.push_back(own);
    return names;
}

}  // namespace

const Family kNomicBert{
    "nomic_bert", {"nomic_bert"}, "NomicBERT: BERT with rotary positions and gated feed-forward", read, names};

}  // namespace headscope::model
