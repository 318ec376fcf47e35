// SPDX-License-Identifier: GPL-3.0-or-later
// OPT (Zhang et al., arXiv 2205.01068): learned positions from the third row of their table on, pre-norm (the 350M:
// post-norm and small embeddings).
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

constexpr std::int64_t kOffset = 2;  // the table's first rows were fairseq's padding

SizeKeys keys() {
    SizeKeys keys;
    keys.feed_forward = "ffn_dim";
    keys.embedding = "word_embed_proj_dim";
    return keys;
}

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config;
    read_sizes(config, reader, keys());
    refuse_groups(config, reader, keys());
    config.max_positions = reader.size(keys().positions, 2048);
    config.positions_are_a_table = true;
    config.position_offset = kOffset;
    const std::int64_t entry = reader.size(keys().embedding, config.hidden);
    if (entry != config.hidden) config.embedding_size = entry;
    config.pre_norm = reader.boolean("do_layer_norm_before", true);
    config.final_norm = config.pre_norm && !reader.boolean("_remove_final_layer_norm", false);
    config.norm_affine = reader.boolean("layer_norm_elementwise_affine", true);
    config.activation = read_activation(reader, "activation_function", "relu");
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = reader.boolean("enable_bias", true);
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    return config;
}

TensorNames names(const ModelConfig&) {
    TensorNames names;
    names.keys = keys();
    names.keys.positions += " + " + std::to_string(kOffset);
    names.prefixes = {"model.decoder.", "decoder.", ""};
    names.token_embedding = "embed_tokens";
    names.position_embedding = "embed_positions";
    names.embedding_projection = "project_in";
    names.layer = "layers.{}.";
    names.in_layer.input_norm = "self_attn_layer_norm";
    names.in_layer.query = "self_attn.q_proj";
    names.in_layer.key = "self_attn.k_proj";
    names.in_layer.value = "self_attn.v_proj";
    names.in_layer.output = "self_attn.out_proj";
    names.in_layer.feed_forward_norm = "final_layer_norm";
    names.in_layer.up = "fc1";
    names.in_layer.down = "fc2";
    names.final_norm = "final_layer_norm";
    names.output_projection = "project_out";
    names.head = "lm_head";
    names.buffers = {"decoder.version"};
    return names;
}

}  // namespace

const Family kOpt{"opt", {"opt"}, "OPT: learned positions from row 2 on, layer norms, plain feed-forward", read, names};

}  // namespace headscope::model
