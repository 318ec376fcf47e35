// SPDX-License-Identifier: GPL-3.0-or-later
// PEGASUS (Zhang et al., arXiv 1912.08777): BART with its norms before attention and feed-forward, none of the
// embeddings, and sinusoidal positions.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_pre_norm_bart(reader, large_bart(50'265, 0));
    change_towers(config, [](ModelConfig& tower) {
        tower.embedding_norm = false;
        tower.positions = PositionKind::sinusoidal;
        tower.position_offset = 0;
    });
    return config;
}

}  // namespace

const Family kPegasus{"pegasus", {"pegasus"}, "PEGASUS: BART, pre-norm, with sinusoidal positions",
                      read,      bart_names,  bart_encoder_names};

}  // namespace headscope::model
