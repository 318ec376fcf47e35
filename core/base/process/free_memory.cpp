// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/process/free_memory.h"

#include <algorithm>
#include <cstdint>

#include "core/base/error.h"
#include "core/base/text/text.h"

namespace headscope {

void expect_memory(const std::string& what, double bytes, const std::vector<LessMemory>& others,
                   const std::string& otherwise, double room) {
    if (room <= 0 || bytes <= room) return;
    const auto size = [](double value) { return size_text(static_cast<std::uint64_t>(std::min(value, 9e18))); };
    std::string advice = "nothing fits" + (otherwise.empty() ? "" : ": " + otherwise);
    const auto fits = std::find_if(others.begin(), others.end(), [room](const auto& one) { return one.bytes <= room; });
    if (fits != others.end()) advice = fits->option + " needs " + size(fits->bytes);
    throw Error(ErrorCode::memory, "memory", "expected " + size(bytes) + " for " + what,
                "found " + size(room) + " free: " + advice);
}

}  // namespace headscope
