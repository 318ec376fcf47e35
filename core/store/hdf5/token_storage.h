// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// HDF5 part of token files (core/data/token_file.h; docs/file-formats.md, "Token files"): everything except the long
// blocks of numbers, which callers read and write at the returned positions. Errors: headscope::Error. Threads: plain
// functions, under Hdf5Lock.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace headscope::store {

/// A file that the tokens were made of.
struct TokenSource {
    std::string path;
    std::string sha256;
    std::int64_t bytes = 0;
};

struct TokenFileInfo {
    std::int64_t tokens = 0;
    std::int64_t validation_begin = 0;  ///< tokens [validation_begin, tokens) are held out
    std::int64_t documents = 0;
    std::int64_t vocabulary = 0;  ///< ids are below it
    std::int64_t separator = -1;  ///< the id behind each document; -1: none
    int bytes_per_token = 2;      ///< 2: uint16, 4: uint32
    /// Hash embeddings: numbers in /tokens per word; `tokens` counts numbers.
    std::int64_t numbers_per_token = 1;
    /// 2: documents go two by two (a text and its translation; a text and its pair, which may be empty). Only then may
    /// documents be empty, and has each a label.
    std::int64_t documents_per_item = 1;
    std::string documents_sha256{};  ///< of items: of the two SHA-256 of /documents/begin and /documents/label
    std::string tokenizer;           ///< "bytes", "train:2048", a path
    std::string tokenizer_sha256;    ///< of its files
    std::string key;                 ///< SHA-256 of everything that the file was made from
    std::string tokens_sha256;       ///< of the values of /tokens
    std::vector<TokenSource> sources;
};

/// Bytes from the file's begin.
struct TokenBlocks {
    std::uint64_t tokens = 0;           ///< of `tokens` numbers
    std::uint64_t document_begin = 0;   ///< /documents/begin: int64, one more than there are documents
    std::uint64_t document_source = 0;  ///< /documents/source: int32
    std::uint64_t document_label = 0;   ///< of items: /documents/label, float32
};

/// Makes the file with room for the blocks, whose values are still to be written.
TokenBlocks create_token_file(const std::filesystem::path& path, const TokenFileInfo& info);

struct StoredTokens {
    TokenFileInfo info;
    TokenBlocks blocks;
};

/// Error format for what is no token file: every block lies within the file, splits and sizes agree.
StoredTokens read_token_file(const std::filesystem::path& path);

}  // namespace headscope::store
