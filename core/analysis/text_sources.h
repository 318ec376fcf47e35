// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace headscope::analysis {

/// resources/texts/NAME.txt. Throws Error (usage) with the known names.
std::filesystem::path bundled_text_path(const std::filesystem::path& resources, const std::string& name);

/// A JSON array of arrays of ids, each in [0, vocabulary) (any non-negative int32 when vocabulary is 0).
std::vector<std::vector<std::int32_t>> read_token_file(const std::filesystem::path& path, std::int64_t vocabulary);

}  // namespace headscope::analysis
