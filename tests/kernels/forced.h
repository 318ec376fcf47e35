// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "kernels/backend.h"

namespace headscope::kernels::testing {

/// Forces a backend until its end.
struct Forced {
    explicit Forced(const std::string& name) { force_backend(name); }
    ~Forced() { force_backend("auto"); }
    Forced(const Forced&) = delete;
    Forced& operator=(const Forced&) = delete;
};

}  // namespace headscope::kernels::testing
