// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Decoder input of an encoder-decoder for a sequence: its start token, then a text's tokens or a list of ids. Errors:
// headscope::Error. Threads: plain functions.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/store/analysis/analysis_header.h"

namespace headscope::tokenizer {
class Tokenizer;
}

namespace headscope::analysis {

struct TargetOptions {
    std::vector<std::string> texts;                  ///< --target
    std::vector<std::filesystem::path> token_files;  ///< --target-tokens: what follows the start token
    std::int32_t start = 0;                          ///< decoder_start_token_id
    std::int64_t vocabulary = 0;                     ///< ids must be below it
    std::int64_t length = 0;                         ///< keep the first N tokens, the start token among them; 0: all
    std::string option = "--target";                 ///< named in errors
    bool repeat_token = false;                       ///< every token of a text becomes the text's first one
};

/// One for each of `sequences`: a single target is that of all of them, and without any the decoder reads its start
/// token alone. Texts are tokenized as the tokenizer does by itself, with the tokens that it adds.
/// Throws usage for other numbers of targets and empty texts, limit and mismatch for ids outside the vocabulary.
std::vector<store::SequenceTokens> read_targets(const TargetOptions& options, std::size_t sequences,
                                                const tokenizer::Tokenizer* tokenizer,
                                                const Cancellation* cancellation = nullptr);

}  // namespace headscope::analysis
