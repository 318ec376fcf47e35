// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/io/nameless_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "core/base/process/os_error.h"

namespace headscope {
namespace {

constexpr std::size_t kLargestTransfer = std::size_t{1} << 30U;

}  // namespace

NamelessFile::NamelessFile(std::filesystem::path folder, const std::string& content)
    : folder_(folder.empty() ? std::filesystem::path(".") : std::move(folder)),
      expected_("expected to write " + content + " here") {
    descriptor_ = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor_ >= 0) return;
    // File systems without nameless files: one whose name goes at once.
    std::string pattern = (folder_ / ".headscope-XXXXXX").string();
    descriptor_ = ::mkostemp(pattern.data(), O_CLOEXEC);
    if (descriptor_ < 0) throw os_error(errno, folder_, expected_);
    ::unlink(pattern.c_str());
}

NamelessFile::~NamelessFile() {
    ::close(descriptor_);
}

void NamelessFile::write(const void* bytes, std::size_t size, std::uint64_t offset) {
    const auto* from = static_cast<const char*>(bytes);
    while (size > 0) {
        const ssize_t count = ::pwrite(descriptor_, from, std::min(size, kLargestTransfer), static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) throw os_error(count < 0 ? errno : ENOSPC, folder_, expected_);
        from += count;
        size -= static_cast<std::size_t>(count);
        offset += static_cast<std::uint64_t>(count);
    }
}

void NamelessFile::read(void* bytes, std::size_t size, std::uint64_t offset) const {
    auto* to = static_cast<char*>(bytes);
    while (size > 0) {
        const ssize_t count = ::pread(descriptor_, to, std::min(size, kLargestTransfer), static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) throw os_error(count < 0 ? errno : EIO, folder_, expected_);
        to += count;
        size -= static_cast<std::size_t>(count);
        offset += static_cast<std::uint64_t>(count);
    }
}

}  // namespace headscope
