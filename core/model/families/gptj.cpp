// SPDX-License-Identifier: GPL-3.0-or-later
// GPT-J (Wang and Komatsuzaki 2021): attention and feed-forward side by side after one norm; neighbouring numbers of a
// head are rotated as pairs.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

SizeKeys keys() {
    SizeKeys keys;
    keys.hidden = "n_embd";
    keys.layers = "n_layer";
    keys.heads = "n_head";
    keys.feed_forward = "n_inner";
    keys.positions = "n_positions";
    return keys;
}

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config;
    read_sizes(config, reader, keys(), 4 * reader.size(keys().hidden));
    refuse_groups(config, reader, keys());
    config.max_positions = reader.size(keys().positions, 2048);
    config.positions = PositionKind::rotary;
    const std::int64_t rotated = reader.is_null("rotary_dim") ? 0 : reader.size("rotary_dim", 64);
    if (rotated < 2 || rotated % 2 != 0 || rotated > config.head_size) {
        reader.refuse("rotary_dim", "an even number from 2 to the size of a head, " + std::to_string(config.head_size));
    }
    config.rope.size = rotated;
    config.rope.interleaved = true;
    config.parallel_residual = true;
    config.parallel_norms = false;
    config.norm = NormKind::layer;
    config.norm_epsilon = reader.positive("layer_norm_epsilon", 1e-5);
    config.activation = read_activation(reader, "activation_function", "gelu_new");
    config.feed_forward_bias = config.head_bias = true;
    config.tied_head = reader.boolean("tie_word_embeddings", false);
    return config;
}

TensorNames names(const ModelConfig&) {
    TensorNames names;
    names.keys = keys();
    names.prefixes = {"transformer.", ""};
    names.token_embedding = "wte";
    names.layer = "h.{}.";
    names.in_layer.input_norm = "ln_1";
    names.in_layer.query = "attn.q_proj";
    names.in_layer.key = "attn.k_proj";
    names.in_layer.value = "attn.v_proj";
    names.in_layer.output = "attn.out_proj";
    names.in_layer.up = "mlp.fc_in";
    names.in_layer.down = "mlp.fc_out";
    names.final_norm = "ln_f";
    names.head = "lm_head";
    names.head_bias = {"lm_head.bias"};
    names.buffers = {".attn.bias", ".attn.masked_bias", ".attn.embed_positions"};
    return names;
}

}  // namespace

const Family kGptj{
    "gptj", {"gptj"}, "GPT-J: parallel residual after one norm, rotated pairs of neighbours", read, names};

}  // namespace headscope::model
