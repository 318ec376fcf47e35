// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Turns the user's input into token sequences: texts, files, bundled examples, lists of ids. Errors: headscope::Error.
// Threads: plain functions.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/store/analysis/analysis_header.h"
#include "core/tokenizer/chat_template.h"

namespace headscope::checkpoint {
class Checkpoint;
}
namespace headscope::tokenizer {
class Tokenizer;
}

namespace headscope::analysis {

/// The token before the text: as asked, or as the tokenizer does by itself.
enum class FirstToken { automatic, yes, no };

struct InputOptions {
    std::vector<std::string> texts;                  ///< --text
    std::vector<std::filesystem::path> files;        ///< --file; "-" is standard input
    std::vector<std::string> examples;               ///< --example: names of bundled texts
    std::vector<std::filesystem::path> token_files;  ///< --tokens: JSON arrays of arrays of ids
    /// --pair: what each text, file and example is a pair with, in their order; one alone is that of all of them.
    std::vector<std::string> pairs;
    std::filesystem::path resources;  ///< the resources folder; needed for examples only
    /// --chat: each text, file and example is one user message through this template, up to where the answer begins.
    /// What is analysed and stored is the text that it makes; first and other special tokens are the template's.
    std::optional<tokenizer::ChatTemplate> chat;
    tokenizer::ChatOptions chat_options;
    FirstToken first_token = FirstToken::automatic;  ///< --bos; lists of ids are taken as they are
    std::optional<std::int32_t> first_token_id;      ///< for FirstToken::yes where the tokenizer adds none
    std::int64_t length = 0;                         ///< --length: keep the first N tokens; 0: all
    bool windows = false;                            ///< --windows: cut into windows of `length` instead
    bool repeat_token = false;                       ///< --repeat-token
    std::int64_t vocabulary = 0;                     ///< ids must be below it; 0: not checked
    /// Called with each sequence's tokens before further work; throws if the model cannot take that many.
    std::function<void(std::int64_t tokens)> check_length;
};

struct Input {
    std::vector<store::SequenceTokens> sequences;  ///< texts, files, examples, token lists, in this order
    std::vector<std::filesystem::path> paths;      ///< files that were read: no output may replace one
    /// Treatment of the first token, for settings and messages: "added by the tokenizer", "left out", ...
    std::string first_token;
};

/// Reads everything and tokenizes it. `tokenizer` may be null when only token files are given.
/// Throws usage for nothing to do (no source, an empty text, windows without a length), format for files that are not
/// what they should be, limit for ids outside the vocabulary.
///
/// A pair is one sequence, joined as the tokenizer does; its text is both with a line feed between.
///
/// A window holds consecutive tokens of its text, the last one what is left; its text and offsets are its own. With
/// repeat_token every token of a text becomes the text's first one, tokens that the tokenizer inserted stay.
Input read_input(const InputOptions& options, const tokenizer::Tokenizer* tokenizer,
                 const Cancellation* cancellation = nullptr);

/// A whole text file, checked to be UTF-8; "-" reads standard input to its end.
std::string read_text_file(const std::filesystem::path& path, const Cancellation* cancellation = nullptr);

/// Names of the bundled texts, resources/texts/NAME.txt, sorted.
std::vector<std::string> bundled_texts(const std::filesystem::path& resources);

/// One of them, whole. Throws usage for an unknown name.
std::string bundled_text(const std::filesystem::path& resources, const std::string& name);

/// The id of the token that begins a text: config.json's bos_token_id, or tokenizer_config.json's bos_token.
std::optional<std::int32_t> beginning_token(const checkpoint::Checkpoint& checkpoint,
                                            const tokenizer::Tokenizer& tokenizer);
/// The id of the token that ends a text, by the tokenizer: tokenizer_config.json's eos_token.
std::optional<std::int32_t> ending_token(const checkpoint::Checkpoint& checkpoint,
                                         const tokenizer::Tokenizer& tokenizer);
/// Tokens after which a continuation ends: those of the checkpoint's files (model::end_tokens), else ending_token(), if
/// there is a tokenizer.
std::vector<std::int64_t> ending_tokens(const checkpoint::Checkpoint& checkpoint,
                                        const tokenizer::Tokenizer* tokenizer);

}  // namespace headscope::analysis
