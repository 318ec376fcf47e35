// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/mixers/mixer.h"

namespace headscope::mixers {

/// Of a layer in which a token needs no other one.
class NoCache final : public MixerCache {
public:
    std::int64_t bytes() const override { return 0; }
    std::unique_ptr<MixerCache> clone() const override { return std::make_unique<NoCache>(); }
    std::unique_ptr<MixerCache> chosen(const at::Tensor&) const override { return clone(); }
};

}  // namespace headscope::mixers
