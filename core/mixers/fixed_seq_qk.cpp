// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/fixed_seq_qk.h"

namespace headscope::mixers {

FixedGuideMixer::FixedGuideMixer(const model::ModelConfig& config, std::int64_t) : GuidedMixer(config) {}

std::string FixedGuideMixer::name() const {
    return "fixed_seq_qk";
}

QueryKeySource FixedGuideMixer::query_key_source() const {
    return QueryKeySource::fixed_guide;
}

}  // namespace headscope::mixers
