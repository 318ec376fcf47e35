// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <vector>

namespace headscope::test {

/// Pages of a file's first `bytes`, at least 1, that the system has in memory.
inline std::size_t cached_pages(const std::filesystem::path& path, std::size_t bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> states((bytes + page - 1) / page);
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) throw std::runtime_error("the file cannot be opened");
    void* const begin = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    ::close(descriptor);
    if (begin == MAP_FAILED) throw std::runtime_error("the file cannot be mapped");
    const int result = ::mincore(begin, bytes, states.data());
    ::munmap(begin, bytes);
    if (result != 0) throw std::runtime_error("no pages are reported");
    const auto cached = [](unsigned char state) { return (state & 1U) != 0; };
    return static_cast<std::size_t>(std::count_if(states.begin(), states.end(), cached));
}

/// Writes a file of `bytes` to the disk and takes it out of the system's cache. False where the file system keeps it in
/// memory.
inline bool drop_from_cache(const std::filesystem::path& path, std::size_t bytes) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) throw std::runtime_error("the file cannot be opened");
    ::fsync(descriptor);
    ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    ::close(descriptor);
    return cached_pages(path, bytes) == 0;
}

}  // namespace headscope::test
