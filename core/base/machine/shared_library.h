// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Libraries that are opened at run time and stay open. Threads: any.

#include <string>

namespace headscope {

struct SharedLibrary {
    void* handle = nullptr;
    std::string problem;  ///< why it is not open: "no FILE: ..."; empty if it is
};

/// `global`: its symbols serve libraries that are opened later.
SharedLibrary open_shared_library(const std::string& file, bool global = false);

}  // namespace headscope
