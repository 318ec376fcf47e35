// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tokenizers whose folder holds a sentencepiece model and no tokenizer.json: Marian, M2M100, mBART, PEGASUS, T5. They
// become the document of what transformers 5.23 makes of them. Marian and M2M100 have a vocabulary beside the model,
// and are left to the package sentencepiece there: their documents have components of our own ("SentencePiece"), which
// do what it does.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace headscope::tokenizer {

/// Side that the tokenizer serves: Marian has a model for each, others may have a language.
enum class Side { source, target };

/// True if `folder` holds a sentencepiece model under a name that is known, be it one that is read or not.
bool has_sentencepiece_files(const std::filesystem::path& folder);
/// True if it is of a kind that is read.
bool reads_sentencepiece_files(const std::filesystem::path& folder);
/// True if the document of the target is another one than the source's.
bool target_differs(const std::filesystem::path& folder);

/// The document. Error(unsupported) for other kinds of tokenizers, and for models that these kinds never have.
nlohmann::json document_of_sentencepiece_files(const std::filesystem::path& folder, Side side = Side::source);

}  // namespace headscope::tokenizer
