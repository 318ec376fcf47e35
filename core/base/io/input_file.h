// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace headscope {

/// A regular file opened for reading by position; symbolic links are followed. Never mapped: a file that shrinks ends
/// in an Error, not in SIGBUS. Folders, pipes, sockets and devices are refused without blocking or touching them.
/// Errors: Error io; mismatch when the file changed under the reader; Stopped within a CancellationScope. Threads:
/// const members from several at once.
class InputFile {
public:
    /// `kind` names the file in errors: "weight file", "configuration".
    explicit InputFile(std::filesystem::path path, std::string kind = "file");
    ~InputFile();
    InputFile(InputFile&& other) noexcept;
    InputFile& operator=(InputFile&&) = delete;

    const std::filesystem::path& path() const noexcept { return path_; }
    /// Bytes, when it was opened.
    std::uint64_t size() const noexcept { return size_; }

    /// Bytes that the disk holds of it: fewer than size() where it has holes. size() where the file system does not
    /// say.
    std::uint64_t stored() const noexcept { return stored_; }

    /// Reads exactly `size` bytes from byte `offset`; an Error if the file ends before. Within UncachedReads, the
    /// system keeps none of their pages.
    void read(std::uint64_t offset, void* to, std::size_t size) const;

    /// The whole file, which must not hold more than `limit` bytes (Error limit); the size is checked before memory is
    /// taken, and a file that grows meanwhile is refused.
    std::string read_all(std::uint64_t limit) const;

    /// Throws mismatch if size or time of change differ from those at opening. Call it after reading what must belong
    /// together.
    void check_unchanged() const;

    /// Size, modification and change time: names the content unless the file is rewritten in place. For caches.
    std::string stamp() const;

private:
    std::filesystem::path path_;
    std::string kind_;
    int descriptor_ = -1;
    std::uint64_t size_ = 0;
    std::uint64_t stored_ = 0;
    std::int64_t modified_ = 0;  ///< nanoseconds since 1970
    std::int64_t changed_ = 0;   ///< nanoseconds since 1970
};

/// A small file, whole: InputFile(path, kind).read_all(limit).
std::string read_small_file(const std::filesystem::path& path, std::uint64_t limit, const std::string& kind = "file");

/// True if `path` ends at a regular file, through links if need be.
bool ends_at_regular_file(const std::filesystem::path& path);

}  // namespace headscope
