// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/base/machine/memory_room.h"

namespace headscope {

/// Another way to do the same work, by the option that asks for it: "--dtype bfloat16".
struct LessMemory {
    std::string option;
    double bytes = 0;
};

/// Throws Error(memory) where less than `bytes` are free for `what` ("weights in float32"), before they are taken:
/// the kernel ends a process that takes more. The error names the first of `others` that fits, with its bytes; where
/// none does, `otherwise` ("shorten --length or record less"). A `room` of 0 is not known, and refuses nothing.
void expect_memory(const std::string& what, double bytes, const std::vector<LessMemory>& others,
                   const std::string& otherwise, double room = own_memory_room());

}  // namespace headscope
