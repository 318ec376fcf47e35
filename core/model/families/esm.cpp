// SPDX-License-Identifier: GPL-3.0-or-later
// ESM-2 and ESM-1b (Lin et al., 10.1126/science.ade2574; Rives et al., 10.1073/pnas.2016239118): encoders of proteins,
// pre-norm, rotary or learned positions; the embedding of masked tokens is dropped.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

void read_positions(ModelConfig& config, const ConfigReader& reader, const SizeKeys& keys) {
    const std::string key = "position_embedding_type", positions = reader.text(key, "absolute");
    config.max_positions = reader.size(keys.positions, 1026);
    if (positions == "rotary") {
        config.positions = PositionKind::rotary;
        // This family has one kind of rotary positions, of whole heads, whatever a rope object says.
        config.rope.theta = reader.positive("rope_theta", 10000.0);
        if (config.head_size % 2 != 0) reader.refuse(keys.heads, "heads of an even size, for rotary positions");
        return;
    }
    if (positions != "absolute" || reader.is_null(key)) reader.unsupported(key, "absolute or rotary");
    const std::string padding = "pad_token_id";
    if (!reader.has(padding) || reader.count(padding, 0) >= config.vocabulary)
        reader.refuse(padding, "an id of the vocabulary, from which absolute positions count");
    config.positions_are_a_table = true;
    skip_padding_positions(config, reader, keys, reader.count(padding, 0));
}

ModelConfig read(const ConfigReader& reader) {
    const SizeKeys keys;
    require_false(reader, "is_decoder");
    require_false(reader, "add_cross_attention");
    ModelConfig config;
    read_sizes(config, reader, keys);
    refuse_groups(config, reader, keys);
    read_positions(config, reader, keys);
    if (reader.boolean("token_dropout", false)) {
        const std::string mask = "mask_token_id";
        if (!reader.has(mask)) reader.refuse(mask, "an id, which token_dropout is about");
        config.dropped_token = reader.count(mask, 0);
    }
    config.causal = false;
    config.embedding_norm = reader.boolean("emb_layer_norm_before", false);
    config.norm_epsilon = reader.positive("layer_norm_eps", 1e-12);
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = true;
    config.head_transform = config.head_bias = true;
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    read_class_head(config, reader);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = bert_names(config);
    names.prefixes = {"esm.", ""};
    names.token_type_embedding.clear();
    names.embedding_norm = "embeddings.layer_norm";
    names.in_layer.input_norm = "attention.LayerNorm";
    names.in_layer.feed_forward_norm = "LayerNorm";
    names.final_norm = "encoder.emb_layer_norm_after";
    names.head = "lm_head.decoder";
    names.head_bias = {"lm_head.bias"};
    names.head_transform = "lm_head.dense";
    names.head_transform_norm = "lm_head.layer_norm";
    name_joint_class_head(names, config);
    // With the star, as transformers 5.23 saves it; in the layers, as the hub has it, all the same.
    const std::string frequencies = "rotary_embeddings.inv_freq", in_layer = ".attention.self." + frequencies;
    names.rotary_frequencies = {"encoder.layer.*" + in_layer, "encoder.layer.0" + in_layer, frequencies};
    names.buffers = {frequencies, "embeddings.position_ids", "contact_head.regression.weight",
                     "contact_head.regression.bias"};
    return names;
}

}  // namespace

const Family kEsm{
    "esm", {"esm"}, "ESM-2, ESM-1b: encoders of proteins, pre-norm, rotary or learned positions", read, names};

}  // namespace headscope::model
