// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>

namespace headscope {

/// Throws Error(io) when the disk that `place` lies on, or would lie on, has less than `bytes` left: before long work
/// whose output's size is known. `what` names that: "this analysis file". Says nothing where the disk does not tell.
void expect_free_space(const std::filesystem::path& place, double bytes, const std::string& what);

}  // namespace headscope
