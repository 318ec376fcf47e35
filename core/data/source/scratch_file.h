// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace headscope::data {

/// Bytes that wait on the disk, not in memory, until it is known how many they are. A file without a name: nothing is
/// left of it however the program ends. Errors: Error io. Threads: one at a time.
class ScratchFile {
public:
    /// In the folder of what it will become a part of.
    explicit ScratchFile(std::filesystem::path folder);
    ~ScratchFile();
    ScratchFile(const ScratchFile&) = delete;
    ScratchFile& operator=(const ScratchFile&) = delete;

    void append(const void* bytes, std::size_t size);
    std::uint64_t size() const noexcept { return size_; }
    /// Copies everything to byte `offset` of a file opened for writing.
    void copy_to(int descriptor, std::uint64_t offset, const std::filesystem::path& target);

private:
    void write_out();

    std::filesystem::path folder_;
    std::string waiting_;
    std::uint64_t size_ = 0;
    int descriptor_ = -1;
};

}  // namespace headscope::data
