// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/guided.h"

namespace headscope::mixers {

/// FixedSeqQK (Deconstructing Attention, arXiv 2510.11602): attention guided by the first tokens of the training text,
/// saved with the model.
class FixedGuideMixer final : public GuidedMixer {
public:
    FixedGuideMixer(const model::ModelConfig& config, std::int64_t layer);

    std::string name() const override;
    QueryKeySource query_key_source() const override;
};

}  // namespace headscope::mixers
