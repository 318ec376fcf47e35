// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "core/store/hdf5/hdf5.h"

namespace headscope::store {

/// A file open in HDF5 for reading, which can be closed and reopened without its owner's notice.
///
/// HDF5 opens a file once per process: a reader shares the structures of a writer, and while a reader holds the file
/// the writer's close does nothing. The library's last writes would come after the file was checked and renamed,
/// perhaps an hour later. So a writer that closes its file first closes all readers (close_readers); each reopens it,
/// under its new name, at its next read.
///
/// An open file costs HDF5 0.75 MB or more, and hundreds may be viewed in turn: of all ReadHandles of the process the
/// kMostOpen last used are open.
///
/// Threads: all members under Hdf5Lock.
class ReadHandle {
public:
    static constexpr std::size_t kMostOpen = 32;

    /// `path` must be a regular file already (InputFile). Throws io.
    explicit ReadHandle(const std::filesystem::path& path);
    ~ReadHandle();
    ReadHandle(const ReadHandle&) = delete;
    ReadHandle& operator=(const ReadHandle&) = delete;

    /// The file, opened now if need be. Throws what hdf5::open_file does, and io when a read failed of a file that a
    /// writer of this process has open.
    hid_t get();
    /// Lets go of the file: what HDF5 remembers of it is forgotten, unless a writer of this process has it open too.
    void drop() noexcept;
    /// True when get() would open the file: it is not open, or a read of it failed.
    bool dropped() const noexcept;
    /// Bytes in the file now: one that is being written may grow.
    std::uint64_t bytes() const;

    /// Takes the file that is now at `path` from every ReadHandle of the process.
    static void close_readers(const std::filesystem::path& path);

private:
    static void close_readers(dev_t device, ino_t inode) noexcept;

    std::filesystem::path path_;
    std::string where_;
    int descriptor_ = -1;  ///< keeps the file at hand when it is renamed
    dev_t device_ = 0;
    ino_t inode_ = 0;
    hdf5::Handle file_;
};

}  // namespace headscope::store
