// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/token_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/input_file.h"
#include "core/base/os_error.h"
#include "core/base/sha256.h"
#include "core/base/text.h"

namespace headscope::data {
namespace {

/// Copies numbers of type Id and returns the greatest.
template <class Id>
std::uint64_t widen(const std::byte* from, std::int64_t count, std::int64_t* to) {
    Id greatest = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        Id id = 0;  // the block may lie at any byte
        std::memcpy(&id, from + static_cast<std::size_t>(i) * sizeof(Id), sizeof(Id));
        greatest = std::max(greatest, id);
        to[i] = static_cast<std::int64_t>(id);
    }
    return greatest;
}

}  // namespace

std::shared_ptr<const TokenFile> TokenFile::open(const std::filesystem::path& path) {
    std::shared_ptr<TokenFile> file(new TokenFile);
    file->path_ = path;
    store::StoredTokens stored = store::read_token_file(path);
    file->info_ = std::move(stored.info);
    file->blocks_ = stored.blocks;
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) throw os_error(errno, path, "expected a token file");
    struct stat status {};
    const auto end = stored.blocks.tokens + static_cast<std::uint64_t>(file->info_.tokens) *
                                                static_cast<std::uint64_t>(file->info_.bytes_per_token);
    // It may have been replaced since it was read: by a whole one, perhaps shorter.
    if (::fstat(descriptor, &status) != 0 || static_cast<std::uint64_t>(status.st_size) < end) {
        ::close(descriptor);
        throw Error(ErrorCode::mismatch, shown(path), "expected a file that nobody changes", "found it changed");
    }
    void* mapped = ::mmap(nullptr, end, PROT_READ, MAP_SHARED, descriptor, 0);
    const int number = errno;
    ::close(descriptor);
    if (mapped == MAP_FAILED) throw os_error(number, path, "expected to map this token file");
    file->mapped_ = mapped;
    file->mapped_bytes_ = end;
    return file;
}

TokenFile::~TokenFile() {
    if (mapped_ != nullptr) ::munmap(const_cast<void*>(mapped_), mapped_bytes_);
}

TokenRange TokenFile::range(Split split) const noexcept {
    if (split == Split::training) return {0, info_.validation_begin};
    return {info_.validation_begin, info_.tokens};
}

void TokenFile::copy(std::int64_t begin, std::int64_t count, std::int64_t* to) const {
    if (begin < 0 || count < 0 || begin > info_.tokens || count > info_.tokens - begin) {
        throw Error(ErrorCode::internal, shown(path_), "expected tokens of this file",
                    "found " + std::to_string(count) + " from " + std::to_string(begin) + " on");
    }
    const auto size = static_cast<std::size_t>(info_.bytes_per_token);
    const auto* from = static_cast<const std::byte*>(mapped_) + blocks_.tokens + static_cast<std::size_t>(begin) * size;
    const std::uint64_t greatest =
        size == 2 ? widen<std::uint16_t>(from, count, to) : widen<std::uint32_t>(from, count, to);
    if (greatest >= static_cast<std::uint64_t>(info_.vocabulary)) {
        throw Error(ErrorCode::format, shown(path_), "expected ids below " + std::to_string(info_.vocabulary),
                    "found " + std::to_string(greatest) + "; remove the file to have it made again");
    }
}

TokenRange TokenFile::document(std::int64_t index) const {
    if (index < 0 || index >= info_.documents) {
        throw Error(ErrorCode::internal, shown(path_),
                    "expected one of " + std::to_string(info_.documents) + " documents",
                    "found number " + std::to_string(index));
    }
    std::array<std::int64_t, 2> range{};
    InputFile(path_, "token file")
        .read(blocks_.document_begin + static_cast<std::uint64_t>(index) * sizeof(std::int64_t), range.data(),
              sizeof range);
    if (range[0] < 0 || range[0] > range[1] || range[1] > info_.tokens) {
        throw Error(ErrorCode::format, shown(path_) + ", /documents/begin", "expected growing places of tokens",
                    "found " + std::to_string(range[0]) + ", " + std::to_string(range[1]));
    }
    return {range[0], range[1]};
}

void TokenFile::verify(Progress& progress, const Cancellation& cancellation) const {
    constexpr std::size_t piece = std::size_t{4} << 20U;
    const auto* from = static_cast<const std::byte*>(mapped_) + blocks_.tokens;
    const std::size_t size = mapped_bytes_ - blocks_.tokens;
    Sha256 hash;
    for (std::size_t at = 0; at < size; at += piece) {
        cancellation.check();
        hash.update(from + at, std::min(piece, size - at));
        progress.advance(static_cast<double>(at), static_cast<double>(size), "check the token file");
    }
    if (hash.finish() != info_.tokens_sha256) {
        throw Error(ErrorCode::format, shown(path_) + ", /tokens", "expected the tokens that were written",
                    "found others; remove the file to have it made again");
    }
}

}  // namespace headscope::data
