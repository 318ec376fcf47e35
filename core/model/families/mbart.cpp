// SPDX-License-Identifier: GPL-3.0-or-later
// mBART (Liu et al., arXiv 2001.08210): BART with its norms before attention and feed-forward, and one at the end of
// each tower.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    // Which language the decoder starts with, many files leave to the user: transformers then takes the first token.
    return read_pre_norm_bart(reader, large_bart(50'265, reader.count("bos_token_id", 0)));
}

}  // namespace

const Family kMBart{"mbart", {"mbart"},  "mBART: BART, pre-norm, with a final norm in each tower",
                    read,    bart_names, bart_encoder_names};

}  // namespace headscope::model
