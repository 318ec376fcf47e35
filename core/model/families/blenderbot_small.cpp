// SPDX-License-Identifier: GPL-3.0-or-later
// The small Blenderbot (Roller et al., arXiv 2004.13637): BART with positions from row 0 on, whose decoder normalises
// the tokens' embeddings before it adds them.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    BartDefaults defaults = large_bart(50'265, 1);
    defaults.positions = 512;
    for (SizeDefaults* sizes : {&defaults.encoder, &defaults.decoder}) {
        sizes->hidden = 512;
        sizes->layers = 8;
        sizes->feed_forward = 2048;
    }
    ModelConfig config = read_bart(reader, defaults);
    change_towers(config, [](ModelConfig& tower) { tower.position_offset = 0; });
    config.embedding_norm_first = true;
    config.embedding_scale = 1;  // whatever scale_embedding says: that is for the encoder alone
    return config;
}

}  // namespace

const Family kBlenderbotSmall{"blenderbot-small",
                              {"blenderbot-small"},
                              "small Blenderbot: BART with its decoder's norm before the positions",
                              read,
                              bart_names,
                              bart_encoder_names};

}  // namespace headscope::model
