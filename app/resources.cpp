// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/resources.h"

#include <cstdlib>
#include <vector>

#include "core/base/error.h"

namespace headscope::app {

namespace fs = std::filesystem;

fs::path resource_folder() {
    std::error_code ignored;
    std::vector<fs::path> candidates;
    if (const char* chosen = std::getenv("HEADSCOPE_RESOURCES")) candidates.emplace_back(chosen);
    const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
    candidates.push_back(program.parent_path().parent_path() / "share/headscope");
    candidates.emplace_back(HEADSCOPE_SOURCE_RESOURCES);
    for (const auto& candidate : candidates)
        if (fs::is_directory(candidate / "texts", ignored)) return candidate;
    throw Error(ErrorCode::io, "resources", "expected a folder with texts/ at " + escaped(candidates.front().string()),
                "found none; set HEADSCOPE_RESOURCES");
}

}  // namespace headscope::app
