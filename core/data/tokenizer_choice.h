// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data/data_set.h"
#include "core/data/source/text_parts.h"

namespace headscope::data {

/// The token behind each document of the tokenizers that are made here.
constexpr auto end_of_text = "<|endoftext|>";

struct ChosenTokenizer {
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
    std::vector<TokenizerFile> files;
    std::string sha256;           ///< of the files
    std::int64_t separator = -1;  ///< id that ends a document; -1: none is known
};

/// "train:2048" -> 2048; nothing for another kind. Error usage for a number that cannot be.
std::optional<std::int64_t> trained_size(const std::string& setting);

/// 256 bytes and end_of_text.
ChosenTokenizer byte_tokenizer();
/// A tokenizer.json, a folder with a tokenizer, or weights with one beside them. What ends a document is its eos_token
/// (tokenizer_config.json), else the first known of <|endoftext|>, <|end_of_text|>, </s>, <eos>, [SEP].
ChosenTokenizer tokenizer_at(const std::filesystem::path& path);
/// The id of the token that tokenizer_config.json among `files` says under `key` ("eos_token"); none where it says
/// none, or one that the tokenizer lacks. `folder` names the file in errors.
std::optional<std::int64_t> named_token(const tokenizer::Tokenizer& tokenizer, const std::vector<TokenizerFile>& files,
                                        const char* key, const std::filesystem::path& folder);
/// The id that tokenizer_config.json among `files` says under the first of `keys` that it has, else that of the first
/// known of `usual`.
std::optional<std::int64_t> special_id(const tokenizer::Tokenizer& tokenizer, const std::vector<TokenizerFile>& files,
                                       std::initializer_list<const char*> keys,
                                       std::initializer_list<const char*> usual);
/// Writes model_input_names into tokenizer_config.json among `files` where that leaves it to a model's config.json
/// whether there are token types: a model that is trained with them may have another one.
void state_token_types(std::vector<TokenizerFile>& files, bool types);
/// From tokenizer.json's text, as made by train_tokenizer.
ChosenTokenizer tokenizer_from(const std::string& json, const std::string& where);
/// The same with a tokenizer_config.json of its own.
ChosenTokenizer tokenizer_from(const std::string& json, const std::string& config, const std::string& where);
/// Learns a byte-level BPE of `size` ids (fewer where the text has no more to merge) and gives its tokenizer.json.
std::string train_tokenizer(std::int64_t size, const std::vector<SourceFile>& sources,
                            const ObjectiveSettings& objective, Progress& progress, const Cancellation& cancellation);

}  // namespace headscope::data
