// SPDX-License-Identifier: GPL-3.0-or-later
// M2M100 (Fan et al., arXiv 2010.11125) and NLLB-200's dense models: BART with its norms before attention and
// feed-forward, none of the embeddings, and sinusoidal positions that are counted from the padding's id on and leave
// padding out.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    BartDefaults defaults = large_bart(128'112, 2);
    defaults.activation = "relu";
    defaults.scaled = true;
    ModelConfig config = read_pre_norm_bart(reader, defaults);
    if (config.hidden < 4) reader.unsupported("d_model", "at least 4: wavelengths are spread over half of it");
    if (reader.is_null("pad_token_id")) reader.unsupported("pad_token_id", "a token: positions are counted from it on");
    const std::int64_t padding = reader.count("pad_token_id", 1);
    change_towers(config, [padding](ModelConfig& tower) {
        tower.embedding_norm = false;
        tower.positions = PositionKind::sinusoidal;
        tower.fairseq_sinusoids = true;
        tower.positions_are_a_table = false;
        tower.position_padding = padding;
        tower.position_offset = padding + 1;
    });
    return config;
}

TensorNames with_old_tables(TensorNames names) {
    names.buffers.emplace_back("embed_positions.weights");
    return names;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = with_old_tables(bart_names(config));
    names.logits_bias.clear();
    return names;
}

TensorNames encoder_names(const ModelConfig& config) {
    return with_old_tables(bart_encoder_names(config));
}

}  // namespace

const Family kM2M100{"m2m_100", {"m2m_100"}, "M2M100, NLLB: BART, pre-norm, with fairseq's sinusoidal positions",
                     read,      names,       encoder_names};

}  // namespace headscope::model
