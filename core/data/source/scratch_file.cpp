// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/source/scratch_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "core/base/process/os_error.h"

namespace headscope::data {
namespace {

constexpr std::size_t piece = std::size_t{1} << 20U;

void write_all(int descriptor, const char* bytes, std::size_t size, const std::filesystem::path& path) {
    while (size > 0) {
        const ssize_t written = ::write(descriptor, bytes, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) throw os_error(written < 0 ? errno : ENOSPC, path, "expected to write tokens here");
        bytes += written;
        size -= static_cast<std::size_t>(written);
    }
}

}  // namespace

ScratchFile::ScratchFile(std::filesystem::path folder) : file_(std::move(folder), "tokens") {}

void ScratchFile::append(const void* bytes, std::size_t size) {
    waiting_.append(static_cast<const char*>(bytes), size);
    size_ += size;
    if (waiting_.size() >= piece) write_out();
}

void ScratchFile::write_out() {
    file_.write(waiting_.data(), waiting_.size(), written_);
    written_ += waiting_.size();
    waiting_.clear();
}

void ScratchFile::copy_to(int descriptor, std::uint64_t offset, const std::filesystem::path& target) {
    write_out();
    if (::lseek(descriptor, static_cast<off_t>(offset), SEEK_SET) < 0) {
        throw os_error(errno, target, "expected to write tokens here");
    }
    std::vector<char> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(size_, piece)));
    for (std::uint64_t at = 0; at < size_;) {
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(size_ - at, buffer.size()));
        file_.read(buffer.data(), count, at);
        write_all(descriptor, buffer.data(), count, target);
        at += count;
    }
}

}  // namespace headscope::data
