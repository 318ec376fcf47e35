// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tokenizers from before tokenizer.json: vocab.json with merges.txt (GPT-2, RoBERTa and the like), vocab.txt (BERT and
// the like), and their settings. They become the tokenizer.json that transformers 5.23 makes of them.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace headscope::tokenizer {

/// True if `folder` holds vocab.json and merges.txt, or vocab.txt.
bool has_older_files(const std::filesystem::path& folder);

/// The document. Error(unsupported) for kinds whose rules these files lack.
nlohmann::json document_of_older_files(const std::filesystem::path& folder);

}  // namespace headscope::tokenizer
