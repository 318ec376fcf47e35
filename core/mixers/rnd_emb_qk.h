// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/guided.h"

namespace headscope::mixers {

/// RndEmbQK (Deconstructing Attention, arXiv 2510.11602): attention guided by noise that is drawn once and saved with
/// the model.
class RandomGuideMixer final : public GuidedMixer {
public:
    RandomGuideMixer(const model::ModelConfig& config, std::int64_t layer);

    std::string name() const override;
    QueryKeySource query_key_source() const override;
};

}  // namespace headscope::mixers
