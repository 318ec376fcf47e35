// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "core/base/progress.h"

namespace headscope::model {

/// Fills the matrices of a layer's experts when they are used. Threads: the compute thread.
class ExpertLoader {
public:
    virtual ~ExpertLoader() = default;
    /// Makes the matrices of an expert valid until the layer is left. `next` is likely to follow; -1: none.
    virtual void load(std::int64_t expert, std::int64_t next, const Cancellation* cancellation) = 0;
};

}  // namespace headscope::model
