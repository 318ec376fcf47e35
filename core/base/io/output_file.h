// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

/// One output file that appears whole or not at all. The bytes go to a temporary file beside the target; publish()
/// syncs it, renames it over the target and syncs the folder; without publish() the destructor removes it, so that an
/// error or a cancellation (which unwinds) leaves nothing behind.
///
/// The temporary is NAME.partial. If that exists (a job that was killed, or another process writing the same output)
/// it is left alone and NAME.2.partial ... NAME.99.partial are tried, each created exclusively: two processes never
/// write into one file, and the last to publish wins with a whole file. A target that is a symbolic link to a regular
/// file is written through: the file that it ends at is replaced, the link stays. The mode of a replaced file is kept.
///
///     OutputFile file("out/a.csv", inputs, "table");
///     file.append("layer,head\n");   // or hand file.partial_path() to a library that writes by path
///     file.publish();
///
/// Errors: Error io (no space, permission, read-only system, name too long, ...), usage (a target that cannot be).
/// Threads: one at a time.
class OutputFile {
public:
    /// Checks the target and creates the empty temporary. `inputs`: files that must not be overwritten. `kind` names
    /// the output in errors: "analysis", "figure", "table".
    explicit OutputFile(const std::filesystem::path& target, std::span<const std::filesystem::path> inputs = {},
                        std::string kind = "output");
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    /// Path for writers that open it themselves. They may truncate or replace the file, and must close it before
    /// publish().
    const std::filesystem::path& partial_path() const noexcept { return partial_; }
    /// The file that publish() makes, with links resolved.
    const std::filesystem::path& target() const noexcept { return target_; }

    /// Appends bytes through a descriptor of the object's own, all or an Error. Not to be mixed with a writer by path.
    /// Long files go to the disk as they come, so that publish() does not block for gigabytes.
    void append(std::string_view bytes);
    void append(const void* bytes, std::size_t size) { append({static_cast<const char*>(bytes), size}); }

    /// Syncs, checks the target once more, renames. After it the destructor does nothing. After an Error the
    /// temporary is still removed by the destructor.
    void publish();

    /// From now on the destructor leaves the temporary where it is: for a file that is of use though incomplete.
    void keep_partial() noexcept { keep_ = true; }

    /// Throws unless `target` is absent or a regular file that may be replaced, in a folder that exists, and is none
    /// of `inputs`, compared by device and inode: through symbolic and hard links too. Creates nothing; call it
    /// before long work.
    static void check_target(const std::filesystem::path& target, std::span<const std::filesystem::path> inputs = {});

private:
    void flush_behind();
    std::string wish() const { return "expected to write this " + kind_; }

    std::filesystem::path target_;
    std::filesystem::path partial_;
    std::vector<std::filesystem::path> inputs_;
    std::string kind_;
    int descriptor_ = -1;
    std::uint64_t appended_ = 0;
    std::uint64_t handed_on_ = 0;  ///< bytes handed to the disk
    std::uint64_t flushed_ = 0;    ///< the disk has written what is before
    bool keep_ = false;
    bool published_ = false;
};

/// True for two names of one file or folder: through links, and for names of what is not there yet.
bool same_file(const std::filesystem::path& a, const std::filesystem::path& b);

/// Writes a file of these bytes, whole or not at all: an OutputFile, published.
void write_whole_file(const std::filesystem::path& target, std::string_view bytes, std::string kind = "file",
                      std::span<const std::filesystem::path> inputs = {});

/// Syncs a folder's entries to the disk, where the file system can. Throws io.
void sync_folder(const std::filesystem::path& folder);

/// Removes `path` if it is a symbolic link, to any target. Throws nothing: the next open reports the problem.
void remove_link(const std::filesystem::path& path) noexcept;

}  // namespace headscope
