// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace headscope {

/// A temporary file without a name: nothing is left of it however the program ends. Errors: Error io. Threads: one at a
/// time.
class NamelessFile {
public:
    /// On the disk of `folder`. `content` names it in errors: "tokens".
    NamelessFile(std::filesystem::path folder, const std::string& content);
    ~NamelessFile();
    NamelessFile(const NamelessFile&) = delete;
    NamelessFile& operator=(const NamelessFile&) = delete;

    /// All bytes, at byte `offset`; the file grows as needed.
    void write(const void* bytes, std::size_t size, std::uint64_t offset);
    /// All bytes, which were written before.
    void read(void* bytes, std::size_t size, std::uint64_t offset) const;

private:
    std::filesystem::path folder_;
    std::string expected_;  ///< of errors
    int descriptor_ = -1;
};

}  // namespace headscope
