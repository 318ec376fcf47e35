// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/base/io/nameless_file.h"

namespace headscope::data {

/// Bytes that wait on the disk, not in memory, until it is known how many they are. Errors: Error io. Threads: one at a
/// time.
class ScratchFile {
public:
    /// In the folder of what it will become a part of.
    explicit ScratchFile(std::filesystem::path folder);

    void append(const void* bytes, std::size_t size);
    std::uint64_t size() const noexcept { return size_; }
    /// Copies everything to byte `offset` of a file opened for writing.
    void copy_to(int descriptor, std::uint64_t offset, const std::filesystem::path& target);

private:
    void write_out();

    NamelessFile file_;
    std::string waiting_;
    std::uint64_t size_ = 0;
    std::uint64_t written_ = 0;
};

}  // namespace headscope::data
