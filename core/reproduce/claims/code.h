// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "core/reproduce/claims.h"

namespace headscope::reproduce {

extern const PaperCode kDeconattn, kNatsl, kLazy, kThesis;
/// The paper's name begins with PaperCode::paper.
inline const PaperCode* const kPaperCode[] = {&kDeconattn, &kNatsl, &kLazy, &kThesis};

/// The finite numbers of each row of `width` values; rows without any are left out.
Matrix finite_rows(const std::vector<double>& values, std::size_t rows, std::size_t width);

/// How a layer's mean bias goes with distance.
struct Decay {
    double correlation = std::numeric_limits<double>::quiet_NaN();  ///< Pearson's, of bias and distance
    double drop =
        std::numeric_limits<double>::quiet_NaN();  ///< mean over the nearest eighth less that of the farther half
};
Decay decay_of(const std::vector<double>& biases);

}  // namespace headscope::reproduce
