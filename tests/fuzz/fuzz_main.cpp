// SPDX-License-Identifier: GPL-3.0-or-later
// The libFuzzer program (preset "fuzz"): one executable for all targets, HEADSCOPE_FUZZ_TARGET says which. For "list"
// it prints them: name, bytes of the longest input and sources, separated by tabs.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/target.h"

namespace {
const headscope::fuzz::Target* chosen = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    const char* name = std::getenv("HEADSCOPE_FUZZ_TARGET");
    chosen = headscope::fuzz::find_target(name != nullptr ? name : "");
    if (chosen != nullptr) return 0;
    if (name != nullptr && std::strcmp(name, "list") == 0) {
        for (const auto& target : headscope::fuzz::targets()) {
            std::printf("%s\t%zu\t%s\n", target.name, target.longest, target.sources);
        }
        std::exit(0);
    }
    std::fprintf(stderr, "fuzz: [HEADSCOPE_FUZZ_TARGET] expected a target or \"list\"; found %s\n",
                 name ? name : "none");
    std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size > chosen->longest) return -1;  // not kept in the corpus
    chosen->run({reinterpret_cast<const char*>(data), size});
    return 0;
}
