// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/rnd_emb_qk.h"

namespace headscope::mixers {

RandomGuideMixer::RandomGuideMixer(const model::ModelConfig& config, std::int64_t) : GuidedMixer(config) {}

std::string RandomGuideMixer::name() const {
    return "rnd_emb_qk";
}

QueryKeySource RandomGuideMixer::query_key_source() const {
    return QueryKeySource::random_guide;
}

}  // namespace headscope::mixers
