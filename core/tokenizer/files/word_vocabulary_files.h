// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Transformer-XL's word vocabulary: vocab.bin, vocab.pkl or vocab.pt, a dictionary of Python's with idx2sym, written by
// torch.save or pickle. It becomes a document of words between white space, as the paper's own code cuts its corpora:
// <eos> stands for the end of each line and is put behind a text, words that are not there are <unk>. The Moses rules
// that transformers put before them (punctuation, numbers with @,@ and @.@) are left out: texts are such corpora, or
// were tokenized so before.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace headscope::tokenizer {

/// True if `folder` is a Transformer-XL's (by its configuration or its tokenizer's class) and holds such a file.
bool has_word_vocabulary(const std::filesystem::path& folder);

/// The document. Errors: those of checkpoint::read_python_objects; format where idx2sym is no list of distinct texts,
/// unsupported for another delimiter than white space. lower_case is tokenizer_config.json's, else the file's.
nlohmann::json document_of_word_vocabulary(const std::filesystem::path& folder);

}  // namespace headscope::tokenizer
