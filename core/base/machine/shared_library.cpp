// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/machine/shared_library.h"

#include <dlfcn.h>

namespace headscope {

SharedLibrary open_shared_library(const std::string& file, bool global) {
    SharedLibrary library;
    library.handle = dlopen(file.c_str(), RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (library.handle != nullptr) return library;
    const char* const reason = dlerror();
    const std::string why = reason == nullptr ? "no reason is given" : reason;
    library.problem = "no " + (why.starts_with(file + ": ") ? why : file + ": " + why);
    return library;
}

}  // namespace headscope
