// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tokenizers from before tokenizer.json: vocab.json with merges.txt (GPT-2, RoBERTa and their kin), vocab.txt (BERT and
// its kin), and the settings beside them. They become the tokenizer.json that transformers 5.23 makes of them.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace headscope::tokenizer {

/// True if `folder` holds vocab.json and merges.txt, or vocab.txt.
bool has_older_files(const std::filesystem::path& folder);

/// The document. Error(unsupported) for kinds of tokenizers whose rules these files do not tell.
nlohmann::json document_of_older_files(const std::filesystem::path& folder);

}  // namespace headscope::tokenizer
