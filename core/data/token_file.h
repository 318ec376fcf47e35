// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Text that was tokenised once: an HDF5 file of our own (docs/file-formats.md, "Token files") whose /tokens are one
// contiguous, uncompressed block, mapped into memory. Such files are only ever replaced whole, so that a mapping does
// not lose its ground. Const members are safe from several threads.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/data/settings.h"
#include "core/store/hdf5/token_storage.h"

namespace headscope::data {

using store::TokenFileInfo;
using store::TokenSource;

/// Tokens [begin, end).
struct TokenRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t size() const noexcept { return end - begin; }
};

class TokenFile {
public:
    /// Error: format for what is no whole token file; io.
    static std::shared_ptr<const TokenFile> open(const std::filesystem::path& path);
    ~TokenFile();
    TokenFile(const TokenFile&) = delete;
    TokenFile& operator=(const TokenFile&) = delete;

    const std::filesystem::path& path() const noexcept { return path_; }
    const TokenFileInfo& info() const noexcept { return info_; }
    TokenRange range(Split split) const noexcept;
    /// Copies tokens [begin, begin + count); Error format for an id that is not below the vocabulary.
    void copy(std::int64_t begin, std::int64_t count, std::int64_t* to) const;
    /// Range of document `index`.
    TokenRange document(std::int64_t index) const;
    /// In a file of items: the label of document `index`.
    float label(std::int64_t index) const;
    /// In a file of items: the documents of one split.
    TokenRange items(Split split) const;
    /// Throws Error format unless the tokens are those that were written: reads all of them.
    void verify(Progress& progress, const Cancellation& cancellation) const;

private:
    TokenFile() = default;
    std::filesystem::path path_;
    TokenFileInfo info_;
    void check_document(std::int64_t index) const;
    const std::byte* at(std::uint64_t place) const { return static_cast<const std::byte*>(mapped_) + place; }

    store::TokenBlocks blocks_;
    const void* mapped_ = nullptr;
    std::size_t mapped_bytes_ = 0;
};

}  // namespace headscope::data
