// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A fuzz target: one reader of ours, given arbitrary bytes. The same functions run in two programs: under
// libFuzzer with sanitizers (fuzz_main.cpp, preset "fuzz") and in every normal build with a plain main
// (plain_main.cpp), so that they do not rot. docs/dev/testing.md, "Fuzzing".

#include <cstddef>
#include <string_view>
#include <vector>

namespace headscope::fuzz {

struct Target {
    const char* name;     ///< of its folders in corpus/ and regressions/, and of its dictionary
    const char* sources;  ///< what it reads with: paths whose coverage is reported, separated by spaces
    void (*run)(std::string_view input);
    std::size_t longest;  ///< bytes of an input; longer ones are cut
};

/// Every target, in the order in which they run.
const std::vector<Target>& targets();
/// Null where there is none of this name.
const Target* find_target(std::string_view name);

}  // namespace headscope::fuzz
