// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/fuzz/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/check.h"

namespace headscope::fuzz {
namespace {

void write_all(int descriptor, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t done = ::write(descriptor, bytes.data(), bytes.size());
        if (done < 0 && errno != EINTR)
            finding(std::string("the target cannot write its file: ") + std::strerror(errno));
        if (done > 0) bytes.remove_prefix(static_cast<std::size_t>(done));
    }
}

}  // namespace

MemoryFile::MemoryFile() : descriptor_(::memfd_create("headscope-fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0) finding("the target cannot have a file in memory");
    path_ = "/proc/self/fd/" + std::to_string(descriptor_);
}

MemoryFile::~MemoryFile() {
    ::close(descriptor_);
}

void MemoryFile::set(std::string_view bytes) {
    if (::ftruncate(descriptor_, 0) != 0 || ::lseek(descriptor_, 0, SEEK_SET) != 0) finding("the target's file fails");
    write_all(descriptor_, bytes);
}

MemoryFolder::MemoryFolder() {
    const bool shared = ::access("/dev/shm", W_OK) == 0;
    const std::filesystem::path parent = shared ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string pattern = parent / "headscope-fuzz-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) finding("the target cannot have a folder");
    path_ = pattern;
}

MemoryFolder::~MemoryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path MemoryFolder::write(const std::string& name, std::string_view bytes) const {
    std::filesystem::path path = path_ / name;
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (descriptor < 0) finding("the target cannot write " + path.string());
    write_all(descriptor, bytes);
    ::close(descriptor);
    return path;
}

}  // namespace headscope::fuzz
