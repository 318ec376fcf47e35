// SPDX-License-Identifier: GPL-3.0-or-later
// Marian (Junczys-Dowmunt et al., arXiv 1804.00344), the OPUS-MT models: BART without a norm of the embeddings and with
// sinusoidal positions; source and target may have vocabularies of their own.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_bart(reader, large_bart(58'101, 58'100));
    const bool own = !reader.boolean("share_encoder_decoder_embeddings", true);
    change_towers(config, [own](ModelConfig& tower) {
        tower.embedding_norm = false;
        tower.positions = PositionKind::sinusoidal;
        tower.position_offset = 0;
        tower.own_embedding = own;
    });
    // A 0 is as good as none in transformers. Where the towers share a table it is the encoder's.
    if (own && reader.count("decoder_vocab_size", 0) > 0) {
        config.vocabulary = reader.size("decoder_vocab_size");
        if (!reader.has("decoder_start_token_id") && config.decoder_start >= config.vocabulary)
            config.decoder_start = -1;
    }
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = bart_names(config);
    if (config.own_embedding) {
        names.shared_embedding.clear();
        if (config.vocabulary != config.encoder->vocabulary) names.keys.vocabulary = "decoder_vocab_size";
    }
    return names;
}

TensorNames encoder_names(const ModelConfig& config) {
    TensorNames names = bart_encoder_names(config);
    if (config.own_embedding) names.shared_embedding.clear();
    return names;
}

}  // namespace

const Family kMarian{
    "marian", {"marian"}, "Marian, OPUS-MT: BART with sinusoidal positions and one or two vocabularies",
    read,     names,      encoder_names};

}  // namespace headscope::model
