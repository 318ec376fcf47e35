// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/mixers/mixer.h"

namespace headscope::mixers {

/// Cache of a layer in which tokens do not mix.
class NoCache final : public MixerCache {
public:
    std::int64_t bytes() const override { return 0; }
    std::unique_ptr<MixerCache> clone() const override { return std::make_unique<NoCache>(); }
    std::unique_ptr<MixerCache> chosen(const at::Tensor&) const override { return clone(); }
    bool can_drop(std::int64_t) const override { return true; }
};

}  // namespace headscope::mixers
