// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>

namespace headscope {

/// Throws Error(io) if the disk of `place` has less than `bytes` free: call it before long work of known output size.
/// `what` names the output: "this analysis file". Does nothing if the disk reports no free space.
void expect_free_space(const std::filesystem::path& place, double bytes, const std::string& what);

}  // namespace headscope
