// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/source/scratch_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
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

ScratchFile::ScratchFile(std::filesystem::path folder) : folder_(std::move(folder)) {
    descriptor_ = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor_ >= 0) return;
    // File systems without nameless files: one whose name goes at once.
    std::string pattern = (folder_ / ".headscope-tokens-XXXXXX").string();
    descriptor_ = ::mkostemp(pattern.data(), O_CLOEXEC);
    if (descriptor_ < 0) throw os_error(errno, folder_, "expected to write tokens here");
    ::unlink(pattern.c_str());
}

ScratchFile::~ScratchFile() {
    ::close(descriptor_);
}

void ScratchFile::append(const void* bytes, std::size_t size) {
    waiting_.append(static_cast<const char*>(bytes), size);
    size_ += size;
    if (waiting_.size() >= piece) write_out();
}

void ScratchFile::write_out() {
    write_all(descriptor_, waiting_.data(), waiting_.size(), folder_);
    waiting_.clear();
}

void ScratchFile::copy_to(int descriptor, std::uint64_t offset, const std::filesystem::path& target) {
    write_out();
    if (::lseek(descriptor, static_cast<off_t>(offset), SEEK_SET) < 0) {
        throw os_error(errno, target, "expected to write tokens here");
    }
    std::vector<char> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(size_, piece)));
    for (std::uint64_t at = 0; at < size_;) {
        const ssize_t count = ::pread(descriptor_, buffer.data(), buffer.size(), static_cast<off_t>(at));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) throw os_error(count < 0 ? errno : EIO, folder_, "expected the tokens that were written here");
        write_all(descriptor, buffer.data(), static_cast<std::size_t>(count), target);
        at += static_cast<std::uint64_t>(count);
    }
}

}  // namespace headscope::data
