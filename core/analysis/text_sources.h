// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/store/analysis/analysis_header.h"
#include "core/tokenizer/hashed/word_hash.h"

namespace headscope::analysis {

/// resources/texts/NAME.txt. Throws Error (usage) with the known names.
std::filesystem::path bundled_text_path(const std::filesystem::path& resources, const std::string& name);

/// A JSON array of arrays of ids, each in [0, vocabulary) (any non-negative int32 when vocabulary is 0).
std::vector<std::vector<std::int32_t>> read_token_file(const std::filesystem::path& path, std::int64_t vocabulary);
/// The same for a model that hashes words: an item is a number (a special token, or a row of emb), a string (a word,
/// hashed as it stands) or {"hash": its bits as in /tokens/hash}.
std::vector<store::SequenceTokens> read_word_file(const std::filesystem::path& path, const tokenizer::WordHash& hash);

/// A JSON array of arrays of numbers, a label each (AnalysisRequest::labels).
std::vector<std::vector<std::int64_t>> read_label_file(const std::filesystem::path& path);

}  // namespace headscope::analysis
