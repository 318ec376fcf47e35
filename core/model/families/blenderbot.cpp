// SPDX-License-Identifier: GPL-3.0-or-later
// Blenderbot (Roller et al., arXiv 2004.13637): BART with its norms before attention and feed-forward, none of the
// embeddings, and positions from row 0 on.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    BartDefaults defaults = large_bart(8008, 1);
    defaults.positions = 128;
    for (SizeDefaults* sizes : {&defaults.encoder, &defaults.decoder}) {
        sizes->hidden = 2560;
        sizes->heads = 32;
        sizes->feed_forward = 10'240;
    }
    defaults.encoder.layers = 2;
    defaults.decoder.layers = 24;
    ModelConfig config = read_pre_norm_bart(reader, defaults);
    change_towers(config, [](ModelConfig& tower) {
        tower.embedding_norm = false;
        tower.position_offset = 0;
    });
    return config;
}

}  // namespace

const Family kBlenderbot{"blenderbot", {"blenderbot"}, "Blenderbot: BART, pre-norm, without a norm of the embeddings",
                         read,         bart_names,     bart_encoder_names};

}  // namespace headscope::model
