// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Lists of pieces and merges in files of their own, from before tokenizer.json. Errors name file and line.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace headscope::tokenizer {

/// vocab.json: an object {"piece": id}.
nlohmann::json read_vocabulary_json(const std::filesystem::path& path);
/// merges.txt: two pieces a line, with a space between them; lines that begin with #version are none. As the array of
/// lines; both pieces and what they make are in `vocabulary`.
nlohmann::json read_merges(const std::filesystem::path& path, const nlohmann::json& vocabulary);
/// vocab.txt: a piece a line, white space at the end is not part of it; ids count lines from 0. Of equal pieces the
/// last one stands.
nlohmann::json read_vocabulary_lines(const std::filesystem::path& path);

}  // namespace headscope::tokenizer
