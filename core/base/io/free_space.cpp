// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/io/free_space.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"

namespace headscope {

void expect_free_space(const std::filesystem::path& place, double bytes, const std::string& what) {
    namespace fs = std::filesystem;
    std::error_code error;
    fs::path there = place;
    if (!fs::exists(there, error)) there = there.has_parent_path() ? there.parent_path() : fs::path(".");
    const fs::space_info space = fs::space(there, error);
    if (error || space.capacity == 0 || bytes <= static_cast<double>(space.available)) return;
    constexpr double most = 9e18;  // more than any disk, and a number of bytes
    throw Error(
        ErrorCode::io, shown(place),
        "expected " + size_text(static_cast<std::uint64_t>(std::min(bytes, most))) + " of free space for " + what,
        "found " + size_text(space.available));
}

}  // namespace headscope
