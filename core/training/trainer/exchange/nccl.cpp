// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/exchange/nccl.h"

#include <dlfcn.h>

#include <cstdlib>

#include "core/base/error.h"
#include "core/base/machine/shared_library.h"

namespace headscope::training {
namespace {

/// `number` is major * 10000 + minor * 100 + patch; before 2.9 the factors were 1000 and 100.
std::string nccl_version(int number) {
    const int unit = number < 10'000 ? 1'000 : 10'000;
    return std::to_string(number / unit) + "." + std::to_string(number % unit / 100) + "." +
           std::to_string(number % 100);
}

/// Sets `function` to that of the library; false if it lacks it.
template <class Function>
bool read_function(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    return function != nullptr;
}

/// Reads all but ncclGetVersion. Returns the first function that the library lacks, null if it has all.
const char* read_functions(void* library, NcclLibrary& nccl) {
    if (!read_function(library, "ncclGetErrorString", nccl.error_string)) return "ncclGetErrorString";
    if (!read_function(library, "ncclGetUniqueId", nccl.unique_id)) return "ncclGetUniqueId";
    if (!read_function(library, "ncclCommInitRank", nccl.init_rank)) return "ncclCommInitRank";
    if (!read_function(library, "ncclAllReduce", nccl.all_reduce)) return "ncclAllReduce";
    if (!read_function(library, "ncclCommDestroy", nccl.destroy)) return "ncclCommDestroy";
    if (!read_function(library, "ncclCommAbort", nccl.abort)) return "ncclCommAbort";
    return nullptr;
}

}  // namespace

std::string NcclLibrary::error_text(int result) const {
    const char* const text = error_string(result);
    return escaped(text == nullptr ? "error" : text) + " (" + std::to_string(result) + ")";
}

NcclLibrary open_nccl() {
    NcclLibrary nccl;
    const char* const given = std::getenv("HEADSCOPE_NCCL");
    const std::string file = given != nullptr && *given != '\0' ? given : "libnccl.so.2";
    if (file == "none") {
        nccl.problem = "HEADSCOPE_NCCL is none";
        return nccl;
    }
    const SharedLibrary library = open_shared_library(file);
    if (!library.problem.empty()) {
        nccl.problem = library.problem;
        return nccl;
    }
    if (const char* const name = read_functions(library.handle, nccl)) {
        nccl.problem = file + " lacks the function " + name;
        return nccl;
    }
    int (*get_version)(int*) = nullptr;
    int number = 0;
    if (!read_function(library.handle, "ncclGetVersion", get_version)) {
        nccl.problem = file + " lacks the function ncclGetVersion";
    } else if (const int result = get_version(&number); result != 0 || number <= 0) {
        nccl.problem = file + " reports no version: " + nccl.error_text(result);
    } else {
        nccl.number = number;
        nccl.version = nccl_version(number);
    }
    return nccl;
}

}  // namespace headscope::training
