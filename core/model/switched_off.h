// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Heads that are taken out of a forward pass, to see what the model makes of their absence ("ablation": Michel, Levy,
// Neubig, arXiv 1905.10650). Values only: no tensor is known here.

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/site.h"

namespace headscope::model {

/// One head whose output is replaced before the output projection reads it. The head is computed, announced and
/// measured as ever - that is what it would do - and everything after it changes.
struct SwitchedOff {
    enum class How : std::uint8_t {
        zero,  ///< by zeros
        mean,  ///< by its mean over the queries of its sequence, without padding
    };
    std::int64_t site = 0;  ///< index into Model::sites()
    std::int64_t head = 0;
    How how = How::zero;

    bool operator==(const SwitchedOff&) const = default;
};

/// Throws usage for a site or head that the model has not, a head that is named twice, and, with a cache, for a mean:
/// it is over a whole text, of which a cache's caller sees one piece after the other. Zeros are exact with a cache.
void check_switched_off(std::span<const SwitchedOff> heads, const std::vector<Site>& sites, bool cached);

}  // namespace headscope::model
