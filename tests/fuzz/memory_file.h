// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace headscope::fuzz {

/// A file in memory (memfd_create) with a path (/proc/self/fd/N), for readers that open files: no disk is touched, and
/// an execution costs some 10 microseconds.
class MemoryFile {
public:
    MemoryFile();
    ~MemoryFile();
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;

    const std::filesystem::path& path() const noexcept { return path_; }
    void set(std::string_view bytes);  ///< the file's whole new content

private:
    int descriptor_ = -1;
    std::filesystem::path path_;
};

/// A folder of the process's own on tmpfs (/dev/shm, else the temporary folder), for readers that look for files beside
/// files. Removed at exit; a process that dies of a finding leaves it.
class MemoryFolder {
public:
    MemoryFolder();
    ~MemoryFolder();
    MemoryFolder(const MemoryFolder&) = delete;
    MemoryFolder& operator=(const MemoryFolder&) = delete;

    const std::filesystem::path& path() const noexcept { return path_; }
    std::filesystem::path write(const std::string& name, std::string_view bytes) const;

private:
    std::filesystem::path path_;
};

}  // namespace headscope::fuzz
