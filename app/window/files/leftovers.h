// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <vector>

namespace headscope::app {

/// Partial files of analyses in a folder that no process has open: a window or a machine ended before they did. Empty
/// ones hold nothing and are removed. Reads the disk and /proc.
std::vector<std::filesystem::path> find_leftovers(const std::filesystem::path& folder);

}  // namespace headscope::app
