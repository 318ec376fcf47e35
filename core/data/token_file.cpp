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

#include "core/base/io/sha256.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"

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

std::uint64_t token_bytes(const TokenFileInfo& info) {
    return static_cast<std::uint64_t>(info.tokens) * static_cast<std::uint64_t>(info.bytes_per_token);
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
    const TokenFileInfo& info = file->info_;
    const auto documents = static_cast<std::uint64_t>(info.documents);
    std::uint64_t end = std::max(stored.blocks.tokens + token_bytes(info),
                                 stored.blocks.document_begin + (documents + 1) * sizeof(std::int64_t));
    if (info.documents_per_item > 1) end = std::max(end, stored.blocks.document_label + documents * sizeof(float));
    // It may have been replaced since it was read: by a whole one, perhaps shorter.
    if (::fstat(descriptor, &status) != 0 || static_cast<std::uint64_t>(status.st_size) < end) {
        ::close(descriptor);
        throw Error(ErrorCode::mismatch, shown(path), "expected a file that stays unchanged", "found it changed");
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
    const auto* from = at(blocks_.tokens) + static_cast<std::size_t>(begin) * size;
    const std::uint64_t greatest =
        size == 2 ? widen<std::uint16_t>(from, count, to) : widen<std::uint32_t>(from, count, to);
    if (greatest >= static_cast<std::uint64_t>(info_.vocabulary)) {
        throw Error(ErrorCode::format, shown(path_), "expected ids below " + std::to_string(info_.vocabulary),
                    "found " + std::to_string(greatest) + "; remove the file to have it made again");
    }
}

void TokenFile::check_document(std::int64_t index) const {
    if (index >= 0 && index < info_.documents) return;
    throw Error(ErrorCode::internal, shown(path_), "expected one of " + std::to_string(info_.documents) + " documents",
                "found number " + std::to_string(index));
}

TokenRange TokenFile::document(std::int64_t index) const {
    check_document(index);
    std::array<std::int64_t, 2> range{};
    std::memcpy(range.data(), at(blocks_.document_begin + static_cast<std::uint64_t>(index) * sizeof(std::int64_t)),
                sizeof range);
    if (range[0] < 0 || range[0] > range[1] || range[1] > info_.tokens) {
        throw Error(ErrorCode::format, shown(path_) + ", /documents/begin", "expected growing places of tokens",
                    "found " + std::to_string(range[0]) + ", " + std::to_string(range[1]));
    }
    return {range[0], range[1]};
}

float TokenFile::label(std::int64_t index) const {
    check_document(index);
    float value = 0;
    std::memcpy(&value, at(blocks_.document_label + static_cast<std::uint64_t>(index) * sizeof(float)), sizeof value);
    return value;
}

TokenRange TokenFile::items(Split split) const {
    const std::int64_t all = info_.documents / info_.documents_per_item;
    // The first that is held out; one without tokens where the parts meet counts as held out.
    std::int64_t low = info_.validation_begin == info_.tokens ? all : 0, high = all;
    while (low < high) {
        const std::int64_t middle = (low + high) / 2;
        if (document(middle * info_.documents_per_item).begin < info_.validation_begin)
            low = middle + 1;
        else
            high = middle;
    }
    return split == Split::training ? TokenRange{0, low} : TokenRange{low, all};
}

void TokenFile::verify(Progress& progress, const Cancellation& cancellation) const {
    constexpr std::uint64_t piece = std::uint64_t{4} << 20U;
    const auto hash_of = [&](std::uint64_t begin, std::uint64_t size) {
        Sha256 hash;
        for (std::uint64_t done = 0; done < size; done += piece) {
            cancellation.check();
            hash.update(at(begin + done), static_cast<std::size_t>(std::min(piece, size - done)));
            progress.advance(static_cast<double>(done), static_cast<double>(size), "check the token file");
        }
        return hash.finish();
    };
    const auto check = [&](const std::string& found, const std::string& written, const char* what) {
        if (found == written) return;
        throw Error(ErrorCode::format, shown(path_) + ", " + what, "expected the tokens that were written",
                    "found others; remove the file to have it made again");
    };
    check(hash_of(blocks_.tokens, token_bytes(info_)), info_.tokens_sha256, "/tokens");
    if (info_.documents_per_item == 1) return;
    const auto documents = static_cast<std::uint64_t>(info_.documents);
    const std::string begins = hash_of(blocks_.document_begin, (documents + 1) * sizeof(std::int64_t));
    const std::string labels = hash_of(blocks_.document_label, documents * sizeof(float));
    check(sha256_hex(begins + labels), info_.documents_sha256, "/documents");
}

}  // namespace headscope::data
